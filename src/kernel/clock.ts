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
