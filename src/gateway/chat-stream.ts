import type { FastifyReply } from "fastify";
import type { Ending, LiveRun } from "../agent/live-run.ts";
import type { BeamclawError } from "../domain/error-catalogue.ts";
import type { Run } from "../domain/run.ts";
import type { Clock, Timer } from "../kernel/clock.ts";
import { ChunkFrames, type Outcome, outcomeOf } from "./chat-objects.ts";
import { endFailure, httpError, openAiError } from "./errors.ts";
import { type HeaderFields, SseStream } from "./sse.ts";

/** A run that says nothing for this long gets its status line anyway; later failures are frames. */
const STATUS_MS = 5_000;
/** Between the texts of two model calls of one run. */
const PARAGRAPH = "\n\n";
/** Streams up to this many get every delta at once; beyond, deltas of one stream are merged. */
const CALM_STREAMS = 32;
const MERGE_MS = 10;
/** Characters of text in one frame: what a client that stalls can hold in our memory, about. */
const MOST_AT_ONCE = 16_384;

/** Counts open streams of a gateway, so that each knows whether the house is busy. */
export class StreamCrowd {
  open = 0;
}

export interface ChatStreamOptions {
  readonly run: Run;
  /** Null for a run that is not in memory; then `ending` says everything. */
  readonly live: LiveRun | null;
  readonly ending: Ending | null;
  readonly includeUsage: boolean;
  readonly mayDecide: boolean;
  readonly clock: Clock;
  readonly crowd: StreamCrowd;
  /** Headers of the answer; asked when the status line goes out. */
  readonly headers: (outcome: Outcome | null) => HeaderFields;
  /** The client went away before the end. */
  readonly onGone: () => void;
}

/**
 * Relays a live run to one client as chat completion chunks. It keeps a position (segment, offset) in the run
 * and nothing else, so a slow client costs no memory and never slows the run.
 */
export class ChatStream {
  readonly #options: ChatStreamOptions;
  readonly #sse: SseStream;
  readonly #frames: ChunkFrames;
  readonly #unfollow: () => void;
  #status: Timer | null;
  #merge: Timer | null = null;
  #scheduled = false;
  #finished = false;
  #segment = 0;
  #offset = 0;
  /** Whether any text has been sent, and whether the next one starts a paragraph. */
  #spoke = false;
  #paragraph = false;

  constructor(reply: FastifyReply, options: ChatStreamOptions) {
    this.#options = options;
    this.#frames = new ChunkFrames(options.run, options.includeUsage);
    options.crowd.open += 1;
    this.#sse = new SseStream(reply, options.clock, {
      ready: () => this.#pump(),
      close: () => this.#closed(),
    });
    this.#unfollow = options.live?.follow(() => this.#wake()) ?? nothing;
    this.#status = options.clock.setTimer(STATUS_MS, () => this.#open());
  }

  /** Sends what there is already; the rest follows as the run says it. */
  start(): void {
    this.#pump();
  }

  /**
   * Deltas that arrive in one go (one read of the model's socket) make one frame: the frame is built when the
   * current task is done. In a crowd, later deltas wait a moment for company; the first and the end never do.
   */
  #wake(): void {
    if (this.#scheduled) return;
    const patient = this.#spoke && this.#options.crowd.open > CALM_STREAMS && this.#ending() === null;
    if (patient) {
      this.#merge ??= this.#options.clock.setTimer(MERGE_MS, () => this.#pump());
      return;
    }
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#pump();
    });
  }

  #ending(): Ending | null {
    return this.#options.live?.ending ?? this.#options.ending;
  }

  /** Sends what there is to send, as far as the client's socket takes it. */
  #pump(): void {
    this.#merge?.cancel();
    this.#merge = null;
    let more = true;
    while (more && !this.#finished && this.#sse.ready) {
      const taken = this.#take();
      more = taken.more;
      const ending = more ? null : this.#ending();
      if (ending !== null) this.#end(taken.text, ending);
      else if (taken.text !== "") this.#send(this.#frames.text(taken.text));
    }
  }

  #end(text: string, ending: Ending): void {
    this.#finished = true;
    const outcome = outcomeOf(ending, this.#options.mayDecide);
    if (outcome === null) this.#fail(text, ending);
    else this.#finish(text, outcome);
  }

  /** The status line for a run that has not said anything yet. */
  #open(): void {
    if (!this.#sse.open && !this.#finished) this.#send("");
  }

  #send(frames: string): void {
    const opening = this.#sse.open ? "" : this.#frames.role();
    this.#status?.cancel();
    this.#status = null;
    this.#sse.write(opening + frames, () => this.#options.headers(null));
  }

  #finish(streamed: string, outcome: Outcome): void {
    const opening = this.#sse.open ? "" : this.#frames.role();
    const text = streamed + this.#remainder(outcome);
    const calls = outcome.finishReason === "tool_calls" ? outcome.run.clientCalls : [];
    const body = [
      opening,
      text === "" ? "" : this.#frames.text(text),
      ...calls.map((call, index) => this.#frames.call(index, call)),
      this.#frames.finish(outcome),
    ].join("");
    this.#sse.end(body, () => this.#options.headers(outcome));
  }

  /** Before the status line a failure is a status; after it, one frame and no end mark. */
  #fail(text: string, ending: Ending): void {
    const error = endFailure(ending);
    if (!this.#sse.open) {
      sendFailure(this.#sse, error, this.#options.headers(null));
      return;
    }
    const last = text === "" ? "" : this.#frames.text(text);
    this.#sse.end(`${last}data: ${openAiError(error)}\n\n`);
  }

  /**
   * The text after this stream's position, over as many segments as have been opened since. `more` says that
   * the bound of one frame cut it short.
   */
  #take(): { readonly text: string; readonly more: boolean } {
    const segments = this.#options.live?.segments ?? [];
    let text = "";
    for (let at = segments[this.#segment]; at !== undefined; at = segments[this.#segment]) {
      const said = at.done ? at.text.length : wholeCharacters(at.text, at.text.length);
      const room = this.#offset + MOST_AT_ONCE - text.length;
      const end = room < said ? wholeCharacters(at.text, room) : said;
      if (end > this.#offset) text += this.#paragraphed(at.text.slice(this.#offset, end));
      this.#offset = Math.max(end, this.#offset);
      if (room < said) return { text, more: true };
      if (!at.done) break;
      this.#segment += 1;
      this.#offset = 0;
      this.#paragraph = this.#spoke;
    }
    return { text, more: false };
  }

  #paragraphed(text: string): string {
    const lead = this.#paragraph ? PARAGRAPH : "";
    this.#paragraph = false;
    this.#spoke = true;
    return lead + text;
  }

  /** What the outcome says beyond the text that was streamed: a question, or an answer that was never streamed. */
  #remainder({ text, approval }: Outcome): string {
    if (text === null || text === "") return "";
    const streamed = approval === null ? (this.#options.live?.segments.at(-1)?.text ?? "") : "";
    if (streamed.trim() === text.trim()) return "";
    if (streamed !== "" && text.startsWith(streamed)) {
      this.#paragraph = false;
      return text.slice(streamed.length);
    }
    return this.#paragraphed(text);
  }

  #closed(): void {
    this.#options.crowd.open -= 1;
    this.#unfollow();
    this.#status?.cancel();
    this.#merge?.cancel();
    if (!this.#finished) this.#options.onGone();
    this.#finished = true;
  }
}

const nothing = (): void => undefined;

/** `end`, or one less where it would part a surrogate pair. */
function wholeCharacters(text: string, end: number): number {
  const last = text.charCodeAt(end - 1);
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}

function sendFailure(sse: SseStream, error: BeamclawError, headers: HeaderFields): void {
  const { status, body, retryAfterSeconds } = httpError(error, true);
  sse.answer(
    status,
    {
      ...headers,
      "content-type": "application/json; charset=utf-8",
      ...(retryAfterSeconds !== null && { "retry-after": retryAfterSeconds }),
    },
    body,
  );
}
