import type { ModelAnswer, ModelRequest } from "../agent/provider.ts";
import { noUsage, type Usage } from "../domain/message.ts";
import type { FinishReason } from "../domain/run.ts";
import type { Deltas } from "./deltas.ts";
import { asCount, asList, asRecord, asText, parseJson, type JsonRecord } from "./json-value.ts";
import type { AnswerReader } from "./model-exchange.ts";
import { classifyError, errorReport, fault, type Fault, type Scrub } from "./model-fault.ts";
import type { ServerSentEvent } from "./sse-reader.ts";
import { ThinkingStripper } from "./thinking-tags.ts";
import { finishCalls, ToolCallAssembler } from "./tool-call-assembler.ts";

const FINISH_REASONS: Readonly<Record<string, FinishReason>> = {
  stop: "stop",
  length: "length",
  max_tokens: "length",
  tool_calls: "tool_calls",
  function_call: "tool_calls",
  content_filter: "content_filter",
};

/** Reads one answer of the chat completions API, streamed or whole, of OpenAI and of its many followers. */
export class OpenAiAnswer implements AnswerReader {
  readonly #provider: string;
  readonly #request: ModelRequest;
  readonly #deltas: Deltas;
  readonly #scrub: Scrub;
  readonly #thinking = new ThinkingStripper();
  readonly #calls = new ToolCallAssembler();
  #finishReason: string | undefined;
  #usage: Usage = noUsage;
  /** Whether any choice came at all. */
  #chosen = false;
  /** Whether the stream announced its end, with or without having said why. */
  #ended = false;

  constructor(provider: string, request: ModelRequest, deltas: Deltas, scrub: Scrub) {
    this.#provider = provider;
    this.#request = request;
    this.#deltas = deltas;
    this.#scrub = scrub;
  }

  get complete(): boolean {
    return this.#finishReason !== undefined || this.#ended;
  }

  get size(): number {
    return this.#deltas.size + this.#calls.size;
  }

  event({ data }: ServerSentEvent): "more" | "done" | Fault {
    if (data.trim() === "[DONE]") {
      this.#ended = true;
      return "done";
    }
    const chunk = asRecord(parseJson(data));
    if (chunk === undefined) return this.#bad("sent a malformed event");
    return this.#error(chunk) ?? this.#chunk(chunk, "delta") ?? "more";
  }

  whole(body: unknown): Fault | null {
    const record = asRecord(body);
    if (record === undefined) return this.#bad("sent no JSON object");
    const problem = this.#error(record) ?? this.#chunk(record, "message");
    this.#ended = true;
    return problem;
  }

  finish(): ModelAnswer | Fault {
    if (!this.#chosen) return this.#bad("sent an answer without choices");
    this.#deltas.say(this.#thinking.end());
    const calls = finishCalls(this.#calls.finish(), this.#request);
    if (calls === null) return this.#bad("called a tool without a name");
    return {
      text: this.#deltas.text,
      calls,
      finishReason: finishReason(this.#finishReason, calls.length > 0),
      usage: this.#usage,
    };
  }

  #chunk(chunk: JsonRecord, part: "delta" | "message"): Fault | null {
    const usage = asRecord(chunk["usage"]);
    if (usage !== undefined) this.#usage = readUsage(usage);
    const choice = asRecord(asList(chunk["choices"])[0]);
    if (choice === undefined) return null; // the chunk that carries the usage has none
    this.#chosen = true;
    const failed = this.#error(choice);
    if (failed !== null) return failed;
    const problem = this.#message(asRecord(choice[part]) ?? {});
    this.#finishReason = asText(choice["finish_reason"]) ?? this.#finishReason;
    if (this.#finishReason === "error") return this.#bad("broke the answer off");
    return problem;
  }

  #message(message: JsonRecord): Fault | null {
    this.#deltas.think(asText(message["reasoning_content"]) ?? asText(message["reasoning"]) ?? "");
    const content = message["content"];
    if (typeof content === "string") this.#say(content);
    else for (const part of asList(content)) this.#part(asRecord(part) ?? {});
    this.#say(asText(message["refusal"]) ?? "");
    return this.#calls.add(message["tool_calls"]) ? null : this.#bad("called too many tools");
  }

  /** Content in parts, as Mistral's reasoning models send it. */
  #part(part: JsonRecord): void {
    this.#say(asText(part["text"]) ?? "");
    for (const thought of asList(part["thinking"]))
      this.#deltas.think(asText(asRecord(thought)?.["text"]) ?? "");
  }

  #say(text: string): void {
    if (text !== "") this.#deltas.say(this.#thinking.push(text));
  }

  #error(record: JsonRecord): Fault | null {
    const report = errorReport(record);
    return report === undefined ? null : classifyError(this.#provider, 200, report, { scrub: this.#scrub });
  }

  #bad(what: string): Fault {
    return fault("provider_bad_answer", `${this.#provider} ${what}`, { retryable: true });
  }
}

/** Servers that stop for a tool call often say `stop`; a call that was cut off stays `length`. */
function finishReason(raw: string | undefined, calls: boolean): FinishReason {
  const reason = FINISH_REASONS[raw ?? "stop"] ?? "stop";
  if (calls) return reason === "stop" ? "tool_calls" : reason;
  return reason === "tool_calls" ? "stop" : reason;
}

function readUsage(usage: JsonRecord): Usage {
  const cached =
    asCount(asRecord(usage["prompt_tokens_details"])?.["cached_tokens"]) ??
    asCount(usage["prompt_cache_hit_tokens"]);
  const reasoning = asCount(asRecord(usage["completion_tokens_details"])?.["reasoning_tokens"]);
  return {
    promptTokens: asCount(usage["prompt_tokens"]) ?? 0,
    completionTokens: asCount(usage["completion_tokens"]) ?? 0,
    ...(cached !== undefined && { cachedTokens: cached }),
    ...(reasoning !== undefined && { reasoningTokens: reasoning }),
  };
}
