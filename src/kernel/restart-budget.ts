/** Counts restarts within a sliding period; whoever is out of budget must escalate instead of restarting. */
export class RestartBudget {
  readonly #intensity: number;
  readonly #periodMs: number;
  /** Monotonic times of the restarts within the period, at most `#intensity` of them. */
  #spent: number[] = [];

  /** At most `intensity` restarts (0 or more) within any `periodMs` milliseconds. */
  constructor(intensity: number, periodMs: number) {
    if (!Number.isSafeInteger(intensity) || intensity < 0 || !(periodMs > 0))
      throw new RangeError(`no restart budget: ${intensity} in ${periodMs} ms`);
    this.#intensity = intensity;
    this.#periodMs = periodMs;
  }

  /** Restarts that count at present. */
  get spent(): number {
    return this.#spent.length;
  }

  /** Takes one restart at the monotonic time `now`. False: there is none left, and none was taken. */
  spend(now: number): boolean {
    this.#spent = this.#spent.filter((time) => now - time < this.#periodMs);
    if (this.#spent.length >= this.#intensity) return false;
    this.#spent.push(now);
    return true;
  }
}
