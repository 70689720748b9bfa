import type {
  ModelAnswer,
  ModelCall,
  ModelDelta,
  ModelFailure,
  ModelOutcome,
  ModelRequest,
  Provider,
} from "../agent/provider.ts";
import { noUsage } from "../domain/message.ts";
import { onAbort } from "../kernel/scope.ts";
import { Deltas } from "./deltas.ts";

/** What one call of the model does. */
export interface ScriptStep {
  readonly reasoning?: string;
  /** Passed on one by one, each in its own turn of the event loop. */
  readonly deltas?: readonly string[];
  readonly calls?: readonly ModelCall[];
  readonly usage?: ModelAnswer["usage"];
  readonly finishReason?: ModelAnswer["finishReason"];
  readonly extra?: unknown;
  /** How it ends after its deltas; without it, with an answer. */
  readonly ends?: "hangs" | Pick<ModelFailure, "code" | "message" | "retryable" | "retryAfterSeconds">;
}

/** Says the text, in the given pieces. */
export const say = (...deltas: readonly string[]): ScriptStep => ({ deltas });

export const callTools = (...calls: readonly ModelCall[]): ScriptStep => ({ calls });

/** Never answers; ends only when it is cancelled. */
export const hang = (...deltas: readonly string[]): ScriptStep => ({ deltas, ends: "hangs" });

export const fail = (
  code: ModelFailure["code"],
  options: {
    readonly retryable?: boolean;
    readonly retryAfterSeconds?: number;
    deltas?: readonly string[];
  } = {},
): ScriptStep => {
  const { retryable = true, retryAfterSeconds, deltas = [] } = options;
  const failure = { code, message: `scripted ${code}`, retryable };
  return { deltas, ends: retryAfterSeconds === undefined ? failure : { ...failure, retryAfterSeconds } };
};

/**
 * A model that does what it is told, step by step, and remembers what it was asked: for tests, simulation and
 * benchmarks. Past the end of its script it fails for good, which no test mistakes for an answer.
 */
export class ScriptedProvider implements Provider {
  readonly name = "scripted";
  readonly model = "scripted";
  readonly contextWindow: number;
  readonly #steps: (ScriptStep | ((request: ModelRequest) => ScriptStep))[];
  readonly #requests: ModelRequest[] = [];

  constructor(
    steps: readonly (ScriptStep | ((request: ModelRequest) => ScriptStep))[],
    options: { readonly contextWindow?: number } = {},
  ) {
    this.#steps = [...steps];
    this.contextWindow = options.contextWindow ?? 128_000;
  }

  /** Every request so far, oldest first. */
  get requests(): readonly ModelRequest[] {
    return this.#requests;
  }

  /** Steps that have not been played. */
  get left(): number {
    return this.#steps.length;
  }

  add(...steps: readonly (ScriptStep | ((request: ModelRequest) => ScriptStep))[]): void {
    this.#steps.push(...steps);
  }

  async complete(
    request: ModelRequest,
    onDelta: (delta: ModelDelta) => void,
    signal: AbortSignal,
  ): Promise<ModelOutcome> {
    if (signal.aborted) return { kind: "cancelled" };
    this.#requests.push(request);
    const next = this.#steps.shift() ?? fail("provider_rejected", { retryable: false });
    const step = typeof next === "function" ? next(request) : next;
    const deltas = new Deltas(onDelta);
    deltas.think(step.reasoning ?? "");
    for (const text of step.deltas ?? []) {
      deltas.say(text);
      await new Promise(setImmediate);
      if (signal.aborted) return { kind: "cancelled" };
    }
    return step.ends === "hangs" ? await cancelled(signal) : ending(step, deltas);
  }
}

function ending(step: ScriptStep, deltas: Deltas): ModelOutcome {
  if (step.ends !== undefined && step.ends !== "hangs") {
    return { kind: "failed", failure: { ...step.ends, started: deltas.started, partial: deltas.text } };
  }
  const { calls = [], usage = noUsage, extra } = step;
  const finishReason = step.finishReason ?? (calls.length > 0 ? "tool_calls" : "stop");
  const answer = { text: deltas.text, calls, finishReason, usage };
  return { kind: "answered", answer: extra === undefined ? answer : { ...answer, extra } };
}

async function cancelled(signal: AbortSignal): Promise<ModelOutcome> {
  await new Promise<void>((resolve) => {
    onAbort(signal, resolve);
  });
  return { kind: "cancelled" };
}
