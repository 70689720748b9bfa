import type { ModelDelta, ModelOutcome, ModelRequest, Provider } from "../agent/provider.ts";
import { onAbort } from "../kernel/scope.ts";
import { beforeStart, fault } from "./model-fault.ts";

/** Calls that may wait for a place; beyond it a call is refused at once. */
const MAX_WAITING = 1_000;

type Admission = "admitted" | "cancelled" | "refused";

/** Lets so many calls through at a time; the others wait in order of arrival. */
export class LimitedProvider implements Provider {
  readonly name: string;
  readonly model: string;
  readonly contextWindow: number;
  readonly #inner: Provider;
  readonly #maxWaiting: number;
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(inner: Provider, concurrency: number, maxWaiting = MAX_WAITING) {
    this.name = inner.name;
    this.model = inner.model;
    this.contextWindow = inner.contextWindow;
    this.#inner = inner;
    this.#free = concurrency;
    this.#maxWaiting = maxWaiting;
  }

  async complete(
    request: ModelRequest,
    onDelta: (delta: ModelDelta) => void,
    signal: AbortSignal,
  ): Promise<ModelOutcome> {
    const admission = await this.#enter(signal);
    if (admission === "cancelled") return { kind: "cancelled" };
    if (admission === "refused") {
      const text = `${this.#maxWaiting} calls wait for ${this.name} already`;
      return {
        kind: "failed",
        failure: beforeStart(fault("provider_rate_limited", text, { retryable: true })),
      };
    }
    try {
      return await this.#inner.complete(request, onDelta, signal);
    } finally {
      this.#leave();
    }
  }

  #enter(signal: AbortSignal): Promise<Admission> | Admission {
    if (signal.aborted) return "cancelled";
    if (this.#free > 0) {
      this.#free -= 1;
      return "admitted";
    }
    if (this.#waiting.size >= this.#maxWaiting) return "refused";
    return new Promise((resolve) => {
      const admit = (): void => {
        link[Symbol.dispose]();
        resolve("admitted");
      };
      const link = onAbort(signal, () => {
        this.#waiting.delete(admit);
        resolve("cancelled");
      });
      this.#waiting.add(admit);
    });
  }

  /** A place goes straight to the next in line, so that nobody can slip in between. */
  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free += 1;
    else {
      this.#waiting.delete(next);
      next();
    }
  }
}
