/** A number of places; whoever finds none waits in line, and leaves the line when its signal aborts. */
export class Slots {
  #free: number;
  readonly #line = new Set<() => void>();

  constructor(places: number) {
    this.#free = places;
  }

  /** True with a place, which `release` gives back; false if `signal` aborted first. */
  async take(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    if (this.#free > 0) {
      this.#free--;
      return true;
    }
    return new Promise((resolve) => {
      const enter = (): void => {
        signal.removeEventListener("abort", leave);
        resolve(true);
      };
      const leave = (): void => {
        this.#line.delete(enter);
        resolve(false);
      };
      this.#line.add(enter);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  /** Hands the place to the next in line. */
  release(): void {
    const [next] = this.#line;
    if (next === undefined) {
      this.#free++;
      return;
    }
    this.#line.delete(next);
    next();
  }
}
