import type { ModelDelta, ModelOutcome, ModelRequest, Provider } from "../agent/provider.ts";
import { causedByRequest } from "./model-fault.ts";

/**
 * Asks the next provider when one failed before its first delta and another may do better: for every failure
 * except those that the request itself caused. Name and window are those of the first.
 */
export class FallbackProvider implements Provider {
  readonly name: string;
  readonly model: string;
  readonly contextWindow: number;
  readonly #providers: readonly [Provider, ...Provider[]];

  constructor(first: Provider, ...others: readonly Provider[]) {
    this.name = first.name;
    this.model = first.model;
    this.contextWindow = first.contextWindow;
    this.#providers = [first, ...others];
  }

  /** Where all fail the first one's failure counts: it is the model that was asked for. */
  async complete(
    request: ModelRequest,
    onDelta: (delta: ModelDelta) => void,
    signal: AbortSignal,
  ): Promise<ModelOutcome> {
    let first: ModelOutcome | undefined;
    for (const provider of this.#providers) {
      const outcome = await provider.complete(request, onDelta, signal);
      if (outcome.kind !== "failed" || outcome.failure.started) return outcome;
      first ??= outcome;
      if (causedByRequest(outcome.failure)) return first;
    }
    return first ?? { kind: "cancelled" };
  }
}
