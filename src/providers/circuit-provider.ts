import type { ModelDelta, ModelFailure, ModelOutcome, ModelRequest, Provider } from "../agent/provider.ts";
import type { Clock } from "../kernel/clock.ts";
import { beforeStart, fault } from "./model-fault.ts";

/** Failures in a row that open a circuit. */
const THRESHOLD = 5;
const FIRST_OPEN_MS = 5_000;
const LONGEST_OPEN_MS = 60_000;

/**
 * The health of one credential with one model. Closed while calls succeed; after five failures in a row open,
 * that is refusing at once; after a while one call may probe, and its outcome decides. Each failed probe doubles
 * the time, up to a minute.
 */
export class Circuit {
  readonly #clock: Clock;
  #failures = 0;
  #openUntil = 0;
  #openMs = FIRST_OPEN_MS;
  #probing = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True while calls are refused. */
  get open(): boolean {
    return this.#failures >= THRESHOLD && this.#openUntil > this.#clock.monotonic();
  }

  /** Milliseconds until a call may try; 0: now. A caller that got 0 must report how it went. */
  admit(): number {
    if (this.#failures < THRESHOLD) return 0;
    const left = this.#openUntil - this.#clock.monotonic();
    if (left > 0) return left;
    if (this.#probing) return FIRST_OPEN_MS;
    this.#probing = true;
    return 0;
  }

  /** `unknown`: cancelled, or the request's own fault; says nothing about health. */
  report(health: "good" | "bad" | "unknown"): void {
    const probed = this.#probing;
    this.#probing = false;
    if (health === "unknown") return;
    if (health === "good") {
      this.#failures = 0;
      this.#openMs = FIRST_OPEN_MS;
      return;
    }
    this.#failures += 1;
    if (this.#failures < THRESHOLD) return;
    if (probed) this.#openMs = Math.min(LONGEST_OPEN_MS, this.#openMs * 2);
    this.#openUntil = this.#clock.monotonic() + this.#openMs;
  }
}

/** One circuit per key; keys and names come from the configuration, so there are few. */
export class Circuits {
  readonly #clock: Clock;
  readonly #circuits = new Map<string, Circuit>();
  readonly #byName = new Map<string, Circuit>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The circuit that providers of the same `key` share; `name` is the entry that asks for it. */
  of(key: string, name: string): Circuit {
    const circuit = this.#circuits.get(key) ?? new Circuit(this.#clock);
    this.#circuits.set(key, circuit);
    this.#byName.set(name, circuit);
    return circuit;
  }

  /** Whether the entry's calls get through at the moment; true for names that have no circuit. */
  healthy(name: string): boolean {
    return this.#byName.get(name)?.open !== true;
  }
}

/** What says that the provider is ill; a limit, a bad key and a bad request do not. */
const ILL: ReadonlySet<ModelFailure["code"]> = new Set([
  "provider_unavailable",
  "provider_timeout",
  "provider_interrupted",
  "provider_bad_answer",
]);

/** Refuses calls while the circuit is open, so that an outage costs its callers no deadline each. */
export class CircuitProvider implements Provider {
  readonly name: string;
  readonly model: string;
  readonly contextWindow: number;
  readonly #inner: Provider;
  readonly #circuit: Circuit;

  constructor(inner: Provider, circuit: Circuit) {
    this.name = inner.name;
    this.model = inner.model;
    this.contextWindow = inner.contextWindow;
    this.#inner = inner;
    this.#circuit = circuit;
  }

  async complete(
    request: ModelRequest,
    onDelta: (delta: ModelDelta) => void,
    signal: AbortSignal,
  ): Promise<ModelOutcome> {
    if (signal.aborted) return { kind: "cancelled" };
    const wait = this.#circuit.admit();
    if (wait > 0) {
      const text = `${this.name} failed ${THRESHOLD} times in a row and is left alone for a moment`;
      const retryAfterSeconds = Math.ceil(wait / 1000);
      const open = fault("provider_unavailable", text, { retryable: true, retryAfterSeconds });
      return { kind: "failed", failure: beforeStart(open) };
    }
    const outcome = await this.#inner.complete(request, onDelta, signal);
    this.#circuit.report(healthOf(outcome));
    return outcome;
  }
}

function healthOf(outcome: ModelOutcome): "good" | "bad" | "unknown" {
  if (outcome.kind === "answered") return "good";
  return outcome.kind === "failed" && ILL.has(outcome.failure.code) ? "bad" : "unknown";
}
