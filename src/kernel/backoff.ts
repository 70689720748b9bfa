/** How long to wait between attempts: exponential growth, spread over the whole interval. */
export interface Backoff {
  /** Upper bound of the first delay, in milliseconds. */
  readonly baseMs: number;
  /** Upper bound of every delay, in milliseconds. */
  readonly maxMs: number;
  /** Growth per attempt, usually 2. */
  readonly factor: number;
}

/**
 * Full jitter: uniform in [0, min(maxMs, baseMs · factor^attempt)], whole milliseconds. Callers that failed
 * together come back spread out, which costs the callee less than equal or decorrelated jitter
 * (M. Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015).
 *
 * `attempt` counts failures so far and starts at 0; `random` yields numbers in [0, 1).
 */
export function backoffDelay(backoff: Backoff, attempt: number, random: () => number): number {
  const growth = Math.min(backoff.factor ** attempt, Number.MAX_VALUE); // Infinity · 0 is not a number
  const ceiling = Math.floor(Math.min(backoff.maxMs, backoff.baseMs * growth));
  return Math.floor(random() * (ceiling + 1));
}
