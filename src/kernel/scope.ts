/**
 * Structured concurrency: work belongs to a scope, a scope ends as a whole, and whatever was attached to a
 * longer-lived signal is detached again.
 */
import type { Clock } from "./clock.ts";
import { toError } from "./errors.ts";

/** Who ended the work, as far as the outcome shown to people depends on it. */
export type CancelReason = "user" | "shutdown" | "timeout" | "superseded" | "disconnected";

/** The reason of every abort in the product, so that "why did it stop" is never a guess. */
export class Cancelled extends Error {
  override readonly name = "Cancelled";
  readonly reason: CancelReason;

  constructor(reason: CancelReason, message: string = `cancelled: ${reason}`) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Whether `thrown` is no more than the answer of some work to its aborted signal: the signal's reason, a
 * `Cancelled`, or the `AbortError` into which Node's own functions wrap the reason.
 */
export function isCancellation(thrown: unknown, signal: AbortSignal): boolean {
  if (!signal.aborted) return false;
  if (thrown === signal.reason || thrown instanceof Cancelled) return true;
  return thrown instanceof Error && thrown.name === "AbortError";
}

/** Calls `react` once, when `signal` aborts; at once if it has. Disposing removes the listener. */
export function onAbort(signal: AbortSignal, react: () => void): Disposable {
  if (signal.aborted) {
    react();
    return { [Symbol.dispose]() {} };
  }
  signal.addEventListener("abort", react, { once: true });
  return {
    [Symbol.dispose]() {
      signal.removeEventListener("abort", react);
    },
  };
}

export interface LinkedSignal extends Disposable {
  /** Aborts with the first of the linked signals, and with its reason. */
  readonly signal: AbortSignal;
}

/**
 * Like `AbortSignal.any`, but detached from its sources when disposed instead of when the garbage collector
 * gets to it; one of the sources usually lives as long as the process.
 */
export function linkSignals(...sources: readonly AbortSignal[]): LinkedSignal {
  const controller = new AbortController();
  const links: Disposable[] = [];
  const unlink = (): void => {
    for (const link of links.splice(0)) link[Symbol.dispose]();
  };
  for (const source of sources) {
    const follow = (): void => {
      unlink();
      controller.abort(source.reason);
    };
    if (!controller.signal.aborted) links.push(onAbort(source, follow));
  }
  return { signal: controller.signal, [Symbol.dispose]: unlink };
}

export interface ScopeOptions {
  readonly clock: Clock;
  /** The scope aborts with it. */
  readonly parent?: AbortSignal;
  /** How long `close` waits for the work, in milliseconds; 5,000 unless told. */
  readonly closeMs?: number;
  /** How many pieces of work may run at a time; 1,000 unless told. */
  readonly limit?: number;
  /** Hears of work that failed, and of work that `close` had to leave behind (`WorkAbandoned`). */
  readonly onError: (work: string, error: Error) => void;
}

/** The work ignored its signal past the scope's deadline; it may still be running. */
export class WorkAbandoned extends Error {
  override readonly name = "WorkAbandoned";

  constructor(work: string, afterMs: number) {
    super(`${work} did not stop within ${afterMs} ms`);
  }
}

/** Owns background work: starts it, hears of its failures, and is closed only when it has ended. */
export class Scope implements AsyncDisposable {
  readonly #options: ScopeOptions;
  readonly #controller = new AbortController();
  readonly #parentLink: Disposable | undefined;
  readonly #running = new Set<{ readonly name: string }>();
  #emptied: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: ScopeOptions) {
    this.#options = options;
    const parent = options.parent;
    if (parent !== undefined) this.#parentLink = onAbort(parent, () => this.#controller.abort(parent.reason));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Pieces of work that have not ended. */
  get size(): number {
    return this.#running.size;
  }

  /** Starts `work` in the background. False: the scope is closing or at its limit, and nothing was started. */
  spawn(name: string, work: (signal: AbortSignal) => Promise<void>): boolean {
    if (this.signal.aborted || this.#running.size >= (this.#options.limit ?? 1_000)) return false;
    void this.#track({ name }, work);
    return true;
  }

  /** Aborts the work and waits for its end, within the deadline. Later calls wait for the first one's end. */
  close(reason: Cancelled): Promise<void> {
    this.#closing ??= this.#close(reason);
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close(new Cancelled("shutdown"));
  }

  async #track(
    entry: { readonly name: string },
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    this.#running.add(entry);
    try {
      await work(this.signal);
    } catch (thrown) {
      if (!isCancellation(thrown, this.signal)) this.#options.onError(entry.name, toError(thrown));
    } finally {
      this.#running.delete(entry);
      if (this.#running.size === 0) this.#emptied?.();
    }
  }

  async #close(reason: Cancelled): Promise<void> {
    this.#parentLink?.[Symbol.dispose]();
    this.#controller.abort(reason);
    if (this.#running.size === 0) return;
    const { clock, closeMs = 5_000, onError } = this.#options;
    await new Promise<void>((resolve) => {
      const deadline = clock.setTimer(closeMs, resolve);
      this.#emptied = () => {
        deadline.cancel();
        resolve();
      };
    });
    for (const { name } of this.#running) onError(name, new WorkAbandoned(name, closeMs));
  }
}
