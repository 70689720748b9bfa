/** Whether the daemon can serve: asked by load balancers every second, so the answer is kept for a moment. */
import type { Clock } from "../kernel/clock.ts";
import { toError } from "../kernel/errors.ts";
import type { Readiness } from "../gateway/ports.ts";
import type { Store } from "../store/ports.ts";

const keptMs = 1000;

export class ReadinessProbe {
  readonly #clock: Clock;
  readonly #store: () => Store | null;
  readonly #provider: () => string;
  #answer: Promise<Readiness> | null = null;
  #askedAt = 0;

  constructor(options: {
    readonly clock: Clock;
    readonly store: () => Store | null;
    readonly provider: () => string;
  }) {
    this.#clock = options.clock;
    this.#store = options.store;
    this.#provider = options.provider;
  }

  /** Never rejects. Proves at most once a second that a commit reaches the disk. */
  ask(): Promise<Readiness> {
    const now = this.#clock.monotonic();
    if (this.#answer === null || now - this.#askedAt >= keptMs) {
      this.#askedAt = now;
      this.#answer = this.#look();
    }
    return this.#answer;
  }

  async #look(): Promise<Readiness> {
    const problem = await this.#probe();
    return {
      ready: problem === null,
      checks: {
        store: problem === null ? { ok: true } : { ok: false, detail: problem },
        [`provider:${this.#provider()}`]: { ok: true },
      },
    };
  }

  async #probe(): Promise<string | null> {
    try {
      const store = this.#store();
      if (store === null) return "not open";
      await store.probe(this.#clock.now());
      return null;
    } catch (thrown) {
      return toError(thrown).message;
    }
  }
}
