/**
 * The supervised subtree of one active run: the model's stream and the loop. A crash of either starts both again
 * from the store; more than three crashes in a minute give the run up, and nobody else's.
 */
import { BeamclawError } from "../domain/error-catalogue.ts";
import type { Run } from "../domain/run.ts";
import { toError } from "../kernel/errors.ts";
import { type ChildContext, supervise } from "../kernel/supervisor.ts";
import { Cancelled, onAbort } from "../kernel/scope.ts";
import type { LiveRunWriter } from "./live-run.ts";
import type { CancelReason } from "./loop.ts";
import { type LoopExit, LoopRunner } from "./loop-runner.ts";
import { ModelActor } from "./model-actor.ts";
import type { RunServices } from "./run-services.ts";
import { FencedError } from "./tool-step.ts";

export type ScopeExit =
  | LoopExit
  /** Somebody else wrote the run's end, or took it over. */
  | { readonly kind: "fenced" }
  /** The store does not work now; the run is as it was last stored. */
  | { readonly kind: "store_trouble"; readonly error: Error }
  /** Stopped from outside; the run is as it was last stored. */
  | { readonly kind: "stopped" }
  | { readonly kind: "crashed"; readonly error: Error };

const intensity = 3;
const periodMs = 60_000;
const shutdownMs = 5_000;

/** One for all: making an error records a stack, and every run ends with this one. */
const activationOver = new Cancelled("shutdown", "the activation is over");

export class RunScope {
  readonly #services: RunServices;
  #run: Run;
  readonly #live: LiveRunWriter;
  readonly #stop = new AbortController();
  #loop: LoopRunner | null = null;
  #starts = 0;
  #cancelled: CancelReason | null = null;
  #exit: ScopeExit | null = null;

  constructor(services: RunServices, run: Run, live: LiveRunWriter) {
    this.#services = services;
    this.#run = run;
    this.#live = live;
  }

  /** Asks the turn to end early; it ends through its loop, with everything that belongs to an end. */
  cancel(reason: CancelReason): void {
    this.#cancelled ??= reason;
    this.#loop?.cancel(reason);
  }

  /** Works until the activation is over, or until `signal` aborts: then the run is left as it is stored. Never rejects. */
  async run(signal: AbortSignal): Promise<ScopeExit> {
    using _ = onAbort(signal, () => this.#stop.abort(signal.reason));
    const model = new ModelActor(this.#services.agent(this.#run.agent).provider);
    const tree = supervise({
      id: `run ${this.#run.id}`,
      strategy: "rest_for_one",
      intensity,
      periodMs,
      clock: this.#services.clock,
      report: (report) => this.#services.obs.events.childExit(report),
      children: [
        { id: "model", run: model.run, shutdownMs },
        { id: "loop", run: (child) => this.#runLoop(child, model), restart: "transient", shutdownMs },
      ],
    });
    try {
      await tree({ signal: this.#stop.signal, ready: () => undefined });
    } catch (thrown) {
      return this.#exit ?? { kind: "crashed", error: toError(thrown) };
    }
    return this.#exit ?? { kind: "stopped" };
  }

  async #runLoop({ signal, ready }: ChildContext, model: ModelActor): Promise<void> {
    ready();
    try {
      if (!(await this.#takeOver())) return this.#leave({ kind: "fenced" });
      const runner = new LoopRunner(this.#services, this.#run, this.#live, model);
      this.#loop = runner;
      if (this.#cancelled !== null) runner.cancel(this.#cancelled);
      this.#leave(await runner.run(signal));
    } catch (thrown) {
      if (signal.aborted) return;
      if (thrown instanceof FencedError) return this.#leave({ kind: "fenced" });
      if (thrown instanceof BeamclawError && thrown.code === "store_unavailable") {
        return this.#leave({ kind: "store_trouble", error: thrown });
      }
      throw thrown;
    }
  }

  /** A restarted loop becomes a new attempt, so that whatever is left of the crashed one cannot write. */
  async #takeOver(): Promise<boolean> {
    this.#starts += 1;
    if (this.#starts === 1) return true;
    const resumed = await this.#services.store.runs.resume(this.#run.id, this.#services.clock.now());
    if (resumed !== null) this.#run = resumed;
    return resumed !== null;
  }

  #leave(exit: ScopeExit): void {
    this.#exit = exit;
    this.#stop.abort(activationOver);
  }
}
