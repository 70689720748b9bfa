import type { ModelDelta, ModelOutcome, ModelRequest, Provider } from "../agent/provider.ts";
import { backoffDelay, type Backoff } from "../kernel/backoff.ts";
import { sleep, type Clock } from "../kernel/clock.ts";

export interface RetryPolicy {
  /** Further attempts after the first. */
  readonly retries: number;
  /** Counted from the first attempt: no retry begins later, so nobody waits long to hear that a model is down. */
  readonly retrySeconds: number;
}

const BACKOFF: Backoff = { baseMs: 500, maxMs: 8_000, factor: 2 };

/**
 * Tries again what failed before its first delta; after that nobody may, because the words are out. Waits with
 * full jitter, and never shorter than the provider asked for.
 */
export class RetryingProvider implements Provider {
  readonly name: string;
  readonly model: string;
  readonly contextWindow: number;
  readonly #inner: Provider;
  readonly #policy: RetryPolicy;
  readonly #clock: Clock;
  readonly #random: () => number;

  /** `random` yields numbers in [0, 1). */
  constructor(inner: Provider, policy: RetryPolicy, clock: Clock, random: () => number) {
    this.name = inner.name;
    this.model = inner.model;
    this.contextWindow = inner.contextWindow;
    this.#inner = inner;
    this.#policy = policy;
    this.#clock = clock;
    this.#random = random;
  }

  async complete(
    request: ModelRequest,
    onDelta: (delta: ModelDelta) => void,
    signal: AbortSignal,
  ): Promise<ModelOutcome> {
    const deadline = this.#clock.monotonic() + this.#policy.retrySeconds * 1000;
    for (let attempt = 0; ; attempt += 1) {
      const outcome = await this.#inner.complete(request, onDelta, signal);
      if (outcome.kind !== "failed" || attempt >= this.#policy.retries) return outcome;
      const { failure } = outcome;
      if (failure.started || !failure.retryable) return outcome;
      const asked = (failure.retryAfterSeconds ?? 0) * 1000;
      const delay = Math.max(asked, backoffDelay(BACKOFF, attempt, this.#random));
      if (this.#clock.monotonic() + delay > deadline) return outcome;
      if (!(await pause(this.#clock, delay, signal))) return { kind: "cancelled" };
    }
  }
}

/** False: the signal aborted first. */
function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  return sleep(clock, ms, signal).then(
    () => true,
    () => false,
  );
}
