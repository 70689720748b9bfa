import type { ModelAnswer, ModelOutcome } from "../agent/provider.ts";
import type { Clock } from "../kernel/clock.ts";
import { Unreachable } from "../kernel/errors.ts";
import type { Deltas } from "./deltas.ts";
import { parseJson } from "./json-value.ts";
import { classifyError, errorReport, fault, retryAfter, type Fault, type Scrub } from "./model-fault.ts";
import type { HttpCall, HttpEnd, ModelHttp, ResponseHeaders, ResponseSink } from "./model-http.ts";
import { SseReader, type ServerSentEvent } from "./sse-reader.ts";

/** What one wire protocol makes of an answer; the exchange around it is the same for all. */
export interface AnswerReader {
  /** Takes one event of a stream. `done`: the answer is complete, the rest of the stream is of no interest. */
  event(event: ServerSentEvent): "more" | "done" | Fault;
  /** Takes an answer that came as one JSON document instead of a stream. */
  whole(body: unknown): Fault | null;
  /** True once the model has said why it stopped: whatever happens to the stream then does no harm. */
  readonly complete: boolean;
  /** Characters taken in that are kept until the end. */
  readonly size: number;
  /** Passes on what was held back. Called once, and only if `complete`. */
  finish(): ModelAnswer | Fault;
}

export interface ExchangeContext {
  readonly provider: string;
  readonly http: ModelHttp;
  readonly clock: Clock;
  readonly scrub: Scrub;
}

/** Text, thinking and arguments of one answer, in characters. */
const MAX_ANSWER = 4 * 1024 * 1024;
/** One event, or an answer as one document: its JSON may escape every character. */
const MAX_DOCUMENT = 8 * 1024 * 1024;
const MAX_ERROR_BODY = 64 * 1024;

/** Calls a model API once and classifies whatever comes back. Never rejects. */
export async function exchange(
  call: HttpCall,
  reader: AnswerReader,
  deltas: Deltas,
  context: ExchangeContext,
  signal: AbortSignal,
): Promise<ModelOutcome> {
  const sink = new AnswerSink(reader, deltas, context);
  const end = await context.http.post(call, sink, signal);
  if (end.kind === "cancelled") return { kind: "cancelled" };
  const result = sink.result(end, call);
  if ("code" in result) {
    return { kind: "failed", failure: { ...result, started: deltas.started, partial: deltas.text } };
  }
  return { kind: "answered", answer: result };
}

type Mode = "events" | "document" | "error";

class AnswerSink implements ResponseSink {
  readonly #reader: AnswerReader;
  readonly #deltas: Deltas;
  readonly #context: ExchangeContext;
  readonly #events: SseReader;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #mode: Mode | undefined;
  #status = 0;
  #headers: ResponseHeaders = {};
  #fault: Fault | undefined;
  #done = false;

  constructor(reader: AnswerReader, deltas: Deltas, context: ExchangeContext) {
    this.#reader = reader;
    this.#deltas = deltas;
    this.#context = context;
    this.#events = new SseReader((event) => this.#event(event), MAX_DOCUMENT);
  }

  start(status: number, headers: ResponseHeaders): void {
    this.#status = status;
    this.#headers = headers;
    const type = String(headers["content-type"] ?? "text/event-stream").toLowerCase();
    if (status < 200 || status > 299) this.#mode = "error";
    else if (type.includes("text/event-stream")) this.#mode = "events";
    else if (type.includes("json")) this.#mode = "document";
    else this.#fault ??= this.#bad(`answered with ${type.slice(0, 60)} instead of JSON`);
  }

  data(chunk: Buffer): boolean {
    if (this.#fault !== undefined) return true;
    if (this.#mode === "events") {
      this.#deltas.gather();
      if (!this.#events.feed(chunk)) this.#fault ??= this.#bad("sent an event beyond the size limit");
      this.#deltas.release();
      return this.#done || this.#fault !== undefined;
    }
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#mode === "error") return this.#bytes > MAX_ERROR_BODY;
    if (this.#bytes > MAX_DOCUMENT) this.#fault = this.#bad("sent an answer beyond the size limit");
    return this.#fault !== undefined;
  }

  /** The answer, or why there is none. */
  result(end: HttpEnd, call: HttpCall): ModelAnswer | Fault {
    if (this.#fault !== undefined) return this.#fault;
    if (this.#mode === "error") return this.#refused();
    if (this.#mode === "document" && end.kind === "complete") return this.#document();
    if (this.#mode === "events" && end.kind === "complete") this.#events.end();
    if (this.#fault !== undefined) return this.#fault;
    if (this.#reader.complete) return this.#reader.finish();
    return this.#transportFault(end, call);
  }

  #event(event: ServerSentEvent): void {
    if (this.#done || this.#fault !== undefined) return;
    const progress = this.#reader.event(event);
    if (progress === "done") this.#done = true;
    else if (progress !== "more") this.#fault = progress;
    else if (this.#reader.size > MAX_ANSWER) {
      this.#fault = fault("provider_bad_answer", `${this.#context.provider} sent an endless answer`, {
        retryable: false,
      });
    }
  }

  #document(): ModelAnswer | Fault {
    const body = parseJson(Buffer.concat(this.#chunks).toString("utf8"));
    if (body === undefined) return this.#bad("sent malformed JSON");
    return this.#reader.whole(body) ?? this.#reader.finish();
  }

  #refused(): Fault {
    const { provider, scrub, clock } = this.#context;
    const report = errorReport(parseJson(Buffer.concat(this.#chunks).toString("utf8")));
    return classifyError(provider, this.#status, report, {
      scrub,
      retryAfterSeconds: retryAfter(this.#headers, clock.now()),
    });
  }

  #transportFault(end: HttpEnd, { timeouts }: HttpCall): Fault {
    const name = this.#context.provider;
    switch (end.kind) {
      case "complete":
      case "cancelled":
        return fault("provider_interrupted", `${name} ended the answer in the middle`, { retryable: true });
      case "timeout": {
        const texts = {
          connect: `no connection to ${name} within ${timeouts.connectMs / 1000} s`,
          first_byte: `no answer from ${name} within ${timeouts.firstByteMs / 1000} s`,
          idle: `the answer of ${name} stalled for ${timeouts.idleMs / 1000} s`,
        };
        return fault("provider_timeout", texts[end.phase], { retryable: true });
      }
      case "broken":
        return brokenFault(name, end);
      default:
        throw new Unreachable(end);
    }
  }

  #bad(what: string): Fault {
    return fault("provider_bad_answer", `${this.#context.provider} ${what}`, { retryable: true });
  }
}

/** Only the error's code is shown: system messages may quote addresses and headers. */
function brokenFault(name: string, { phase, error }: Extract<HttpEnd, { kind: "broken" }>): Fault {
  const code = "code" in error && typeof error.code === "string" ? error.code : error.name;
  if (code === "UND_ERR_INVALID_ARG") {
    return fault(
      "provider_rejected",
      `the request to ${name} cannot be sent: check its headers and baseUrl`,
      {
        retryable: false,
      },
    );
  }
  if (phase === "idle") {
    return fault("provider_interrupted", `the connection to ${name} broke off (${code})`, {
      retryable: true,
    });
  }
  const what = phase === "connect" ? `cannot connect to ${name}` : `${name} closed the connection`;
  return fault("provider_unavailable", `${what} (${code})`, { retryable: true });
}
