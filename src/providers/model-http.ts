import type * as UndiciModule from "undici";
import type { Dispatcher, Pool } from "undici";
import type { Clock, Timer } from "../kernel/clock.ts";
import { toError } from "../kernel/errors.ts";

/**
 * HTTP to model APIs: one undici pool per origin, shared by all providers that talk to it, and one deadline
 * per phase of a call. undici is imported with the first call, because it costs more than the rest of the
 * start together; `prepare` does it ahead of time.
 */
export interface HttpCall {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly timeouts: Timeouts;
}

/** Milliseconds. */
export interface Timeouts {
  /** Until a connection is there and the request is being written. */
  readonly connectMs: number;
  /** From then until the first byte of the answer's body. */
  readonly firstByteMs: number;
  /** Between two bytes of the body. */
  readonly idleMs: number;
}

export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Takes the answer as it comes in. Must not throw. */
export interface ResponseSink {
  start(status: number, headers: ResponseHeaders): void;
  /** True: nothing more is needed. The call ends now; what is left of the body is read and dropped. */
  data(chunk: Buffer): boolean;
}

export type Phase = "connect" | "first_byte" | "idle";

export type HttpEnd =
  | { readonly kind: "complete" }
  | { readonly kind: "cancelled" }
  | { readonly kind: "timeout"; readonly phase: Phase }
  | { readonly kind: "broken"; readonly phase: Phase; readonly error: Error };

/** How long the rest of a body may take after its sink had enough; beyond it the connection is closed. */
const DRAIN_MS = 1000;
const KEEP_ALIVE_MS = 30_000;

type Undici = typeof UndiciModule.default;

export class ModelHttp {
  readonly #clock: Clock;
  readonly #pools = new Map<string, Pool>();
  #undici: Promise<Undici> | undefined;
  #closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Loads the client ahead of the first call. */
  async prepare(): Promise<void> {
    await this.#load();
  }

  /**
   * Sends a POST and feeds the answer to `sink`. Never rejects. Once `signal` aborts, the end is `cancelled`
   * at once and the connection is closed.
   */
  async post(call: HttpCall, sink: ResponseSink, signal: AbortSignal): Promise<HttpEnd> {
    if (signal.aborted) return { kind: "cancelled" };
    const { Pool } = await this.#load();
    if (signal.aborted) return { kind: "cancelled" };
    if (this.#closed) return { kind: "broken", phase: "connect", error: new Error("the client is closed") };
    return await new Promise((resolve) => {
      const exchange = new Exchange(call.timeouts, sink, signal, this.#clock, resolve);
      exchange.begin(this.#pool(Pool, call), call);
    });
  }

  /** Ends every call and closes every connection. */
  async close(): Promise<void> {
    this.#closed = true;
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  #load(): Promise<Undici> {
    // A bundle has CommonJS under `default` only, so that is where it is taken from everywhere.
    this.#undici ??= import("undici").then((module) => module.default);
    return this.#undici;
  }

  /** Unlimited connections, one request each: how many calls may run at once is decided by `LimitedProvider`. */
  #pool(PoolClass: Undici["Pool"], { url, timeouts }: HttpCall): Pool {
    const key = `${url.origin} ${timeouts.connectMs}`;
    let pool = this.#pools.get(key);
    if (pool === undefined) {
      pool = new PoolClass(url.origin, {
        connect: { timeout: timeouts.connectMs },
        keepAliveTimeout: KEEP_ALIVE_MS,
        // Our own deadlines are exact and tell the phases apart.
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      this.#pools.set(key, pool);
    }
    return pool;
  }
}

/** One call. Settles exactly once; whatever undici reports afterwards is ignored. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #timeouts: Timeouts;
  readonly #sink: ResponseSink;
  readonly #signal: AbortSignal;
  readonly #clock: Clock;
  readonly #resolve: (end: HttpEnd) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #phase: Phase = "connect";
  #phaseSince: number;
  #settled = false;
  #over = false;
  #timer: Timer | undefined;

  constructor(
    timeouts: Timeouts,
    sink: ResponseSink,
    signal: AbortSignal,
    clock: Clock,
    resolve: (end: HttpEnd) => void,
  ) {
    this.#timeouts = timeouts;
    this.#sink = sink;
    this.#signal = signal;
    this.#clock = clock;
    this.#resolve = resolve;
    this.#phaseSince = clock.monotonic();
  }

  begin(pool: Pool, { url, headers, body }: HttpCall): void {
    this.#signal.addEventListener("abort", this.#cancel, { once: true });
    this.#watch(this.#timeouts.connectMs);
    try {
      pool.dispatch({ path: url.pathname + url.search, method: "POST", headers, body }, this);
    } catch (thrown) {
      this.#end({ kind: "broken", phase: this.#phase, error: toError(thrown) });
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#settled) controller.abort(new Error("cancelled while connecting"));
    else this.#enter("first_byte");
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: ResponseHeaders): void {
    if (this.#settled || status < 200) return;
    this.#sink.start(status, headers);
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#settled) return;
    this.#enter("idle");
    if (this.#sink.data(chunk)) this.#drain();
  }

  onResponseEnd(): void {
    this.#over = true;
    if (this.#settled) this.#timer?.cancel();
    else this.#end({ kind: "complete" });
  }

  onResponseError(_: Dispatcher.DispatchController | null, error: Error): void {
    this.#over = true;
    if (this.#settled) this.#timer?.cancel();
    else this.#end({ kind: "broken", phase: this.#phase, error });
  }

  #enter(phase: Phase): void {
    this.#phaseSince = this.#clock.monotonic();
    if (phase === this.#phase) return; // the running timer looks at `#phaseSince` when it fires
    this.#phase = phase;
    this.#timer?.cancel();
    this.#watch(this.#limit());
  }

  #limit(): number {
    const { connectMs, firstByteMs, idleMs } = this.#timeouts;
    return this.#phase === "connect" ? connectMs : this.#phase === "first_byte" ? firstByteMs : idleMs;
  }

  /** One timer per phase, not one per chunk: it goes to sleep again for what is left of the limit. */
  #watch(delayMs: number): void {
    this.#timer = this.#clock.setTimer(delayMs, () => {
      const left = this.#phaseSince + this.#limit() - this.#clock.monotonic();
      if (left > 0) this.#watch(left);
      else this.#end({ kind: "timeout", phase: this.#phase });
    });
  }

  readonly #cancel = (): void => this.#end({ kind: "cancelled" });

  #end(end: HttpEnd): void {
    if (this.#settled) return;
    this.#settle(end);
    if (!this.#over) this.#controller?.abort(new Error(`call ended: ${end.kind}`));
  }

  /** The sink has what it needs: answer now, and keep the connection if the rest comes soon. */
  #drain(): void {
    this.#settle({ kind: "complete" });
    this.#timer = this.#clock.setTimer(DRAIN_MS, () =>
      this.#controller?.abort(new Error("drained too long")),
    );
  }

  #settle(end: HttpEnd): void {
    this.#settled = true;
    this.#timer?.cancel();
    this.#signal.removeEventListener("abort", this.#cancel);
    this.#resolve(end);
  }
}
