import type { ModelAnswer, ModelRequest } from "../agent/provider.ts";
import type { Usage } from "../domain/message.ts";
import type { FinishReason } from "../domain/run.ts";
import { EXTRA_KIND } from "./anthropic-messages.ts";
import type { Deltas } from "./deltas.ts";
import { asCount, asList, asRecord, asText, parseJson, type JsonRecord } from "./json-value.ts";
import type { AnswerReader } from "./model-exchange.ts";
import { classifyError, errorReport, fault, type Fault, type Scrub } from "./model-fault.ts";
import type { ServerSentEvent } from "./sse-reader.ts";
import { finishCalls, type DraftCall } from "./tool-call-assembler.ts";

const FINISH_REASONS: Readonly<Record<string, FinishReason>> = {
  max_tokens: "length",
  model_context_window_exceeded: "length",
  tool_use: "tool_calls",
  refusal: "content_filter",
};

const MAX_BLOCKS = 256;

interface OpenBlock {
  readonly type: string;
  /** The block as it was opened. */
  readonly start: JsonRecord;
  text: string;
  signature: string;
}

/** Reads one answer of Anthropic's Messages API, streamed or whole. */
export class AnthropicAnswer implements AnswerReader {
  readonly #provider: string;
  readonly #request: ModelRequest;
  readonly #deltas: Deltas;
  readonly #scrub: Scrub;
  readonly #blocks = new Map<number, OpenBlock>();
  #kept = 0;
  #stopReason: string | undefined;
  #usage: JsonRecord = {};

  constructor(provider: string, request: ModelRequest, deltas: Deltas, scrub: Scrub) {
    this.#provider = provider;
    this.#request = request;
    this.#deltas = deltas;
    this.#scrub = scrub;
  }

  get complete(): boolean {
    return this.#stopReason !== undefined;
  }

  get size(): number {
    return this.#deltas.size + this.#kept;
  }

  event({ data }: ServerSentEvent): "more" | "done" | Fault {
    const event = asRecord(parseJson(data));
    if (event === undefined) return this.#bad("sent a malformed event");
    const failed = this.#error(event);
    if (failed !== null) return failed;
    switch (event["type"]) {
      case "message_start":
        this.#count(asRecord(event["message"])?.["usage"]);
        return "more";
      case "content_block_start":
        return this.#open(asCount(event["index"]) ?? 0, asRecord(event["content_block"]) ?? {}) ?? "more";
      case "content_block_delta":
        this.#delta(asCount(event["index"]) ?? 0, asRecord(event["delta"]) ?? {});
        return "more";
      case "message_delta":
        this.#count(event["usage"]);
        this.#stopReason = asText(asRecord(event["delta"])?.["stop_reason"]) ?? this.#stopReason;
        return "more";
      case "message_stop":
        return this.complete ? "done" : this.#bad("ended an answer without a reason");
      default:
        return "more"; // pings, and whatever is added to the protocol
    }
  }

  whole(body: unknown): Fault | null {
    const message = asRecord(body);
    if (message === undefined) return this.#bad("sent no JSON object");
    const failed = this.#error(message);
    if (failed !== null) return failed;
    for (const [index, block] of asList(message["content"]).entries()) {
      const problem = this.#open(index, asRecord(block) ?? {});
      if (problem !== null) return problem;
    }
    this.#count(message["usage"]);
    this.#stopReason = asText(message["stop_reason"]);
    return this.complete ? null : this.#bad("sent an answer without a reason to stop");
  }

  finish(): ModelAnswer | Fault {
    const blocks = [...this.#blocks.values()];
    const calls = finishCalls(blocks.filter(({ type }) => type === "tool_use").map(draftCall), this.#request);
    if (calls === null) return this.#bad("called a tool without a name");
    const thinking = blocks.map(keptThinking).filter((block) => block !== null);
    const reason = FINISH_REASONS[this.#stopReason ?? ""] ?? "stop";
    return {
      text: this.#deltas.text,
      calls,
      finishReason: reason === "tool_calls" && calls.length === 0 ? "stop" : reason,
      usage: readUsage(this.#usage),
      ...(thinking.length > 0 && { extra: { kind: EXTRA_KIND, thinking } }),
    };
  }

  #open(index: number, start: JsonRecord): Fault | null {
    const type = asText(start["type"]) ?? "";
    this.#blocks.set(index, { type, start, text: "", signature: asText(start["signature"]) ?? "" });
    this.#append(index, type === "thinking" ? start["thinking"] : start["text"]);
    this.#kept += asText(start["data"])?.length ?? 0;
    return this.#blocks.size <= MAX_BLOCKS ? null : this.#bad("sent too many blocks");
  }

  #delta(index: number, delta: JsonRecord): void {
    switch (delta["type"]) {
      case "text_delta":
        return this.#append(index, delta["text"]);
      case "thinking_delta":
        return this.#append(index, delta["thinking"]);
      case "input_json_delta":
        return this.#append(index, delta["partial_json"]);
      case "signature_delta": {
        const block = this.#blocks.get(index);
        const signature = asText(delta["signature"]) ?? "";
        if (block !== undefined) block.signature += signature;
        this.#kept += signature.length;
        return;
      }
      default:
        return; // citations and the like have no place in a chat answer
    }
  }

  #append(index: number, piece: unknown): void {
    const block = this.#blocks.get(index);
    const text = asText(piece) ?? "";
    if (block === undefined || text === "") return;
    if (block.type === "text") return this.#deltas.say(text);
    block.text += text;
    if (block.type === "thinking") this.#deltas.think(text);
    else this.#kept += text.length;
  }

  /** Counts come in parts; those of the end replace those of the start. */
  #count(usage: unknown): void {
    this.#usage = { ...this.#usage, ...asRecord(usage) };
  }

  #error(record: JsonRecord): Fault | null {
    const report = errorReport(record);
    return report === undefined ? null : classifyError(this.#provider, 200, report, { scrub: this.#scrub });
  }

  #bad(what: string): Fault {
    return fault("provider_bad_answer", `${this.#provider} ${what}`, { retryable: true });
  }
}

/** Input comes in pieces, or (whole answers) with the block itself. */
function draftCall({ start, text }: OpenBlock): DraftCall {
  return {
    id: asText(start["id"]),
    name: asText(start["name"]) ?? "",
    arguments: text === "" ? JSON.stringify(start["input"] ?? {}) : text,
  };
}

/** Thinking is sent back as it came; without its signature it would be refused. */
function keptThinking({ type, start, text, signature }: OpenBlock): object | null {
  if (type === "redacted_thinking") return { type, data: start["data"] };
  return type === "thinking" && signature !== "" ? { type, thinking: text, signature } : null;
}

/** The API counts cached input apart from the rest of it. */
function readUsage(usage: JsonRecord): Usage {
  const cached = asCount(usage["cache_read_input_tokens"]) ?? 0;
  const written = asCount(usage["cache_creation_input_tokens"]) ?? 0;
  return {
    promptTokens: (asCount(usage["input_tokens"]) ?? 0) + cached + written,
    completionTokens: asCount(usage["output_tokens"]) ?? 0,
    ...(cached > 0 && { cachedTokens: cached }),
  };
}
