import { toError } from "./errors.ts";

/**
 * Time as a port. Nothing else in `src` may read the wall clock or set a timer (an architecture test
 * holds this), so that every wait can be driven by hand in tests and in simulation.
 */
export interface Clock {
  /** Wall-clock time in milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds from an arbitrary origin; never goes back, not even when the wall clock is set. */
  monotonic(): number;
  /**
   * Calls `callback` once after at least `delayMs` (0 or more; delays over 2^31−1 ms are honoured).
   * A timer does not keep the process alive. `cancel` after the call is a no-op.
   */
  setTimer(delayMs: number, callback: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}

/** The machine's clock. */
export class SystemClock implements Clock {
  now(): number {
    return Date.now();
  }

  monotonic(): number {
    return performance.now();
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    return new SystemTimer(checkedDelay(delayMs), callback);
  }
}

/**
 * Node fires a longer delay after 1 ms, and any delay up to 1 ms early. Both are cured the same way: what is
 * left when Node's timer fires is waited for again.
 */
const LONGEST_NODE_DELAY_MS = 2 ** 31 - 1;

class SystemTimer implements Timer {
  readonly #due: number;
  readonly #callback: () => void;
  #handle: NodeJS.Timeout;

  constructor(delayMs: number, callback: () => void) {
    this.#due = performance.now() + delayMs;
    this.#callback = callback;
    this.#handle = this.#arm(delayMs);
  }

  cancel(): void {
    clearTimeout(this.#handle);
  }

  #arm(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => this.#fire(), Math.min(Math.ceil(delayMs), LONGEST_NODE_DELAY_MS)).unref();
  }

  #fire(): void {
    const left = this.#due - performance.now();
    if (left > 0) this.#handle = this.#arm(left);
    else this.#callback();
  }
}

interface ManualTimer {
  readonly due: number;
  readonly callback: () => void;
}

/** A clock that stands still until it is told to move: tests and simulations run hours in milliseconds. */
export class ManualClock implements Clock {
  #elapsed = 0;
  #wallOffset: number;
  /** By due time; timers of the same instant in the order in which they were set. */
  readonly #timers: ManualTimer[] = [];

  /** `start` is the wall-clock time at which the clock stands, in milliseconds since the Unix epoch. */
  constructor(start = 0) {
    this.#wallOffset = start;
  }

  /** Timers that are set and have neither fired nor been cancelled. */
  get pending(): number {
    return this.#timers.length;
  }

  now(): number {
    return this.#wallOffset + this.#elapsed;
  }

  monotonic(): number {
    return this.#elapsed;
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    const timer = { due: this.#elapsed + checkedDelay(delayMs), callback };
    const after = this.#timers.findLastIndex((other) => other.due <= timer.due);
    this.#timers.splice(after + 1, 0, timer);
    return { cancel: () => this.#remove(timer) };
  }

  /** Sets the wall clock, as an administrator or NTP would. Timers and `monotonic` do not notice. */
  setWallClock(ms: number): void {
    this.#wallOffset = ms - this.#elapsed;
  }

  /**
   * Moves time on by `ms`, firing what falls due in order. Before the first timer, after each one and at the
   * end every promise job that can run does run, so timers set in consequence fire in the same call.
   */
  async advance(ms: number): Promise<void> {
    const target = this.#elapsed + checkedDelay(ms);
    await settled();
    for (let next = this.#timers[0]; next !== undefined && next.due <= target; next = this.#timers[0]) {
      this.#timers.shift();
      this.#elapsed = Math.max(this.#elapsed, next.due);
      next.callback();
      await settled();
    }
    this.#elapsed = Math.max(this.#elapsed, target);
  }

  #remove(timer: ManualTimer): void {
    const index = this.#timers.indexOf(timer);
    if (index >= 0) this.#timers.splice(index, 1);
  }
}

/**
 * Resolves after `ms`, or rejects with the signal's reason as soon as it aborts. Leaves neither timer nor
 * listener behind.
 */
export function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(toError(signal.reason));
      return;
    }
    const onAbort = (): void => {
      timer.cancel();
      reject(toError(signal.reason));
    };
    const timer = clock.setTimer(ms, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** A delay that was computed from a deadline in the past is due now; one that is no number is a defect. */
function checkedDelay(ms: number): number {
  if (Number.isNaN(ms)) throw new RangeError("a delay must be a number of milliseconds");
  return Math.max(0, ms);
}

/** One turn of the event loop: promise jobs run to exhaustion before it. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
