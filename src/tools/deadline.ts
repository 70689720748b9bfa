import type { Clock, Timer } from "../kernel/clock.ts";
import { Cancelled, onAbort } from "../kernel/scope.ts";

/**
 * A signal that aborts with another one or when its time is up, and knows which of the two it was. Disposing
 * removes the listener and the timer, so that a long-lived signal collects nothing.
 */
export class Deadline implements Disposable {
  readonly #controller = new AbortController();
  readonly #timer: Timer;
  readonly #link: Disposable;
  #expired = false;

  constructor(clock: Clock, ms: number, parent: AbortSignal) {
    this.#link = onAbort(parent, () => this.#controller.abort(parent.reason));
    this.#timer = clock.setTimer(ms, () => {
      this.#expired = !this.#controller.signal.aborted;
      this.#controller.abort(new Cancelled("timeout", `not finished within ${ms} ms`));
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** True when the time ran out before anything else happened. */
  get expired(): boolean {
    return this.#expired;
  }

  [Symbol.dispose](): void {
    this.#timer.cancel();
    this.#link[Symbol.dispose]();
  }
}

/** Settles with `promise`, or rejects when `signal` aborts; what the promise brings later is dropped. */
export async function orAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  using _ = onAbort(signal, () => reject(signal.reason));
  return await Promise.race([promise, aborted]);
}
