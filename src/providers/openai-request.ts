import type { ModelRequest } from "../agent/provider.ts";
import type { ToolDefinition } from "../domain/message.ts";
import type { ModelOptions } from "../domain/run.ts";

/** How one OpenAI-compatible server wants its requests. */
export interface OpenAiDialect {
  readonly model: string;
  /** `merged`: one system message; some models read no more than the first. */
  readonly systemMessages: "merged" | "separate";
  /** Newer OpenAI models refuse `max_tokens`, other servers know nothing else. */
  readonly maxTokensField: "max_tokens" | "max_completion_tokens";
  /** Tokens; bounds what a request may ask for, and is asked for where a request says nothing. */
  readonly maxOutputTokens: number | undefined;
}

/**
 * Writes the body of a chat completions request. The conversation is copied in as the store
 * keeps it, never parsed.
 */
export class OpenAiRequestWriter {
  readonly #dialect: OpenAiDialect;
  readonly #head: string;
  /** The same definitions come with every step of every run of an agent. */
  readonly #tools = new WeakMap<ToolDefinition, string>();
  #last: { readonly text: string; readonly start: Buffer } | undefined;

  constructor(dialect: OpenAiDialect) {
    this.#dialect = dialect;
    this.#head = `{"model":${JSON.stringify(dialect.model)},"stream":true,"stream_options":{"include_usage":true},"messages":[`;
  }

  write(request: ModelRequest): Buffer {
    const start = this.#start(request.system);
    const messages = request.messages.map(({ wire }) => wire).join(",");
    const comma = messages === "" || request.system.length === 0 ? "" : ",";
    const rest = `${comma}${messages}]${this.#toolFields(request)}${this.#optionFields(request.options)}}`;
    // Apart, because one character beyond Latin-1 in either makes encoding the other slow as well.
    const body = Buffer.allocUnsafe(start.length + Buffer.byteLength(rest));
    body.write(rest, start.copy(body));
    return body;
  }

  /** Up to the conversation. Prompts rarely change, so the last one's bytes are kept. */
  #start(system: readonly string[]): Buffer {
    const text = system.join("\0");
    if (this.#last?.text !== text) {
      this.#last = { text, start: Buffer.from(`${this.#head}${this.#system(system)}`) };
    }
    return this.#last.start;
  }

  #system(texts: readonly string[]): string {
    if (texts.length === 0) return "";
    const contents = this.#dialect.systemMessages === "merged" ? [texts.join("\n\n")] : texts;
    return contents.map((content) => JSON.stringify({ role: "system", content })).join(",");
  }

  /** Without tools a choice among them is an error to strict servers. */
  #toolFields({ tools, options }: ModelRequest): string {
    if (tools.length === 0) return "";
    return (
      `,"tools":[${tools.map((tool) => this.#tool(tool)).join(",")}]` +
      field("tool_choice", options.toolChoice) +
      field("parallel_tool_calls", options.parallelToolCalls)
    );
  }

  #tool(tool: ToolDefinition): string {
    let json = this.#tools.get(tool);
    if (json === undefined) {
      const { name, description, parameters } = tool;
      json = JSON.stringify({ type: "function", function: { name, description, parameters } });
      this.#tools.set(tool, json);
    }
    return json;
  }

  #optionFields(options: ModelOptions): string {
    const { maxOutputTokens, maxTokensField } = this.#dialect;
    return (
      field("temperature", options.temperature) +
      field("top_p", options.topP) +
      field(maxTokensField, outputLimit(options.maxTokens, maxOutputTokens)) +
      field("stop", options.stop) +
      field("response_format", options.responseFormat) +
      field("seed", options.seed)
    );
  }
}

const field = (name: string, value: unknown): string =>
  value === undefined ? "" : `,"${name}":${JSON.stringify(value)}`;

/** Tokens that may be asked for: what the request wants, within what the entry allows. */
export function outputLimit(wanted: number | undefined, allowed: number | undefined): number | undefined {
  if (wanted === undefined) return allowed;
  return allowed === undefined ? wanted : Math.min(wanted, allowed);
}
