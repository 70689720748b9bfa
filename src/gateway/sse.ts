import type { OutgoingHttpHeader, ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import type { Clock, Timer } from "../kernel/clock.ts";

/** Comments that keep intermediaries from closing a quiet stream. */
const PING_MS = 15_000;

export type HeaderFields = Readonly<Record<string, string | number>>;

/**
 * A server-sent event stream over the raw response. It never buffers for a slow client: while `ready` is false
 * its owner keeps its own position in what there is to say, and `onReady` tells when to go on from there.
 */
export class SseStream {
  readonly #response: ServerResponse;
  readonly #headers: Readonly<Record<string, OutgoingHttpHeader | undefined>>;
  readonly #clock: Clock;
  #ping: Timer | null = null;
  #full = false;

  /**
   * Takes the response over from the framework; what the framework's hooks have set (request id, CORS) goes
   * out with the head. `onClose` is called once, also when the stream ended properly.
   */
  constructor(
    reply: FastifyReply,
    clock: Clock,
    on: { readonly ready: () => void; readonly close: () => void },
  ) {
    this.#headers = reply.getHeaders();
    this.#response = reply.hijack().raw;
    this.#clock = clock;
    this.#response.on("drain", () => {
      this.#full = false;
      on.ready();
    });
    const close = (): void => {
      this.#ping?.cancel();
      on.close();
    };
    // A client may have left while the run was accepted; then the event is past.
    if (this.#response.destroyed) queueMicrotask(close);
    else this.#response.once("close", close);
  }

  /** Whether the status line is out. */
  get open(): boolean {
    return this.#response.headersSent;
  }

  /** False while the client's socket is full, and for good when it is gone. */
  get ready(): boolean {
    return !this.#full && !this.gone;
  }

  get gone(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  /** The first write sends the head with it, in one packet. `headers` matter only then. */
  write(text: string, headers: () => HeaderFields = none): void {
    if (this.gone) return;
    if (!this.open) this.#head(headers());
    this.#full = !this.#response.write(text);
  }

  end(text: string, headers: () => HeaderFields = none): void {
    if (this.gone) return;
    if (!this.open) this.#head(headers());
    this.#response.end(text);
  }

  /** An ordinary answer instead of a stream; only while the stream is not open. */
  answer(status: number, headers: HeaderFields, body: string): void {
    if (this.gone) return;
    this.#writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) });
    this.#response.end(body);
  }

  #head(headers: HeaderFields): void {
    this.#writeHead(200, { ...STREAM_HEADERS, ...headers });
    this.#schedulePing();
  }

  #writeHead(status: number, headers: HeaderFields): void {
    const fields: OutgoingHttpHeader[] = [];
    for (const [name, value] of Object.entries({ ...this.#headers, ...headers })) {
      if (value !== undefined) fields.push(name, value);
    }
    this.#response.writeHead(status, fields);
  }

  #schedulePing(): void {
    this.#ping = this.#clock.setTimer(PING_MS, () => {
      if (this.ready) this.#full = !this.#response.write(": ping\n\n");
      if (!this.gone) this.#schedulePing();
    });
  }
}

const none = (): HeaderFields => ({});

const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  // Reverse proxies of the nginx family hold streams back unless told.
  "x-accel-buffering": "no",
} as const;
