/**
 * Performs the effects of `loop.ts` for one activation of one run, and sends what comes of them back as events.
 * The store is the only memory: whatever a crash takes from here, the next activation reads again.
 */
import type { ApprovalId } from "../domain/ids.ts";
import type { Run } from "../domain/run.ts";
import { toError, Unreachable } from "../kernel/errors.ts";
import { Machine } from "../kernel/machine.ts";
import { Mailbox } from "../kernel/mailbox.ts";
import { Cancelled } from "../kernel/scope.ts";
import type { StoredStep } from "../store/ports.ts";
import { type PlannedCall, outcomeOf, planCalls, replanCalls } from "./call-planner.ts";
import type { LiveRunWriter } from "./live-run.ts";
import * as loop from "./loop.ts";
import type { ModelActor } from "./model-actor.ts";
import { callModel, compact, type ModelStep } from "./model-step.ts";
import type { ModelOutcome } from "./provider.ts";
import { endRun } from "./run-end.ts";
import type { AgentProfile, RunServices } from "./run-services.ts";
import {
  askApproval,
  interruptedResult,
  recordCalls,
  runCall,
  settleCall,
  type ToolStep,
} from "./tool-step.ts";

/** How an activation ends: the run is over, or it waits in the store for somebody's decision. */
export type LoopExit =
  | { readonly kind: "ended"; readonly run: Run; readonly queued: boolean }
  | { readonly kind: "waiting"; readonly approvalId: ApprovalId };

type Signal =
  | { readonly type: "event"; readonly event: loop.LoopEvent }
  | { readonly type: "failed"; readonly error: Error };

export class LoopRunner {
  readonly #services: RunServices;
  readonly #run: Run;
  readonly #live: LiveRunWriter;
  readonly #model: ModelActor;
  readonly #profile: AgentProfile;
  readonly #machine = new Machine<loop.LoopState, loop.LoopEvent, loop.LoopEffect>(loop.loopTable, {
    name: "idle",
  });
  /** At most one event per call of a step and a few of the loop itself are ever under way. */
  readonly #inbox = new Mailbox<Signal>(4096);
  /** Aborts what is being done now: the model call, the tools. */
  readonly #work = new AbortController();
  readonly #startedAt: number;
  #planned: readonly PlannedCall[] = [];
  #step = 0;
  /** Whether the current step's answer is on disk with its calls; then its text is not partial any more. */
  #recorded = false;
  #question: ApprovalId | null = null;
  #exit: LoopExit | null = null;

  constructor(services: RunServices, run: Run, live: LiveRunWriter, model: ModelActor) {
    this.#services = services;
    this.#run = run;
    this.#live = live;
    this.#model = model;
    this.#profile = services.agent(run.agent);
    this.#startedAt = services.clock.monotonic();
  }

  /** Ends the turn early. What is under way is aborted; the end is committed as usual. */
  cancel(reason: loop.CancelReason): void {
    this.#inbox.push({ type: "event", event: { type: "cancelled", reason } });
  }

  /** Works until the run has ended or waits. Rejects when `signal` aborts: then the run stays as it is stored. */
  async run(signal: AbortSignal): Promise<LoopExit> {
    const { clock, settings } = this.#services;
    const stop = (): void => this.#inbox.close();
    signal.addEventListener("abort", stop, { once: true });
    const remainingMs = Math.max(0, settings.turnSeconds * 1000 - this.#run.activeMs);
    const deadline = clock.setTimer(remainingMs, () => this.cancel("turn_timeout"));
    try {
      this.#perform(this.#machine.send(await this.#begin()));
      for await (const message of this.#inbox) {
        if (message.type === "failed") throw message.error;
        this.#perform(this.#machine.send(message.event));
        if (this.#exit !== null) return this.#exit;
      }
      throw toError(signal.reason ?? new Error("the loop's inbox closed"));
    } finally {
      deadline.cancel();
      signal.removeEventListener("abort", stop);
      this.#work.abort(activationOver);
      this.#inbox.close();
    }
  }

  /** A fresh run starts with a model call, one taken up again with the open calls of its last step. */
  async #begin(): Promise<loop.LoopEvent> {
    const fresh = loop.freshTurn(this.#services.settings.maxToolIterations);
    if (this.#run.attempt === 1) return { type: "run_started", turn: fresh, calls: [] };
    const steps = await this.#services.store.steps.list(this.#run.id);
    const last = steps.at(-1);
    if (last === undefined) return { type: "run_started", turn: fresh, calls: [] };
    const turn = { ...steps.reduce(recount, fresh), rounds: steps.length, step: last.step + 1 };
    if (last.calls.every((call) => call.result !== null || call.client)) {
      return { type: "run_started", turn, calls: [] };
    }
    this.#step = last.step;
    this.#recorded = true;
    this.#planned = replanCalls(last.calls, await this.#planContext());
    const open = { ...turn, step: last.step, rounds: steps.length - 1 };
    return { type: "run_started", turn: open, calls: this.#planned.map(({ call }) => call) };
  }

  #perform(effects: readonly loop.LoopEffect[]): void {
    for (const effect of effects) this.#start(effect);
  }

  #start(effect: loop.LoopEffect): void {
    switch (effect.type) {
      case "call_model":
        this.#step = effect.step;
        this.#recorded = false;
        return this.#background(this.#callModel(effect));
      case "compact":
        return this.#background(this.#compact());
      case "record_calls":
        return this.#background(this.#record(effect));
      case "run_call":
        return this.#background(this.#withCall(effect.index, (step, call) => runCall(step, call)));
      case "settle_interrupted":
        return this.#background(
          this.#withCall(effect.index, (step, call) =>
            settleCall(step, call, { ok: false, text: interruptedResult }),
          ),
        );
      case "ask":
        return this.#background(
          this.#withCall(effect.index, (step, call) => this.#ask(step, call, effect.reason)),
        );
      case "suspend":
        return this.#suspend();
      case "abort_work":
        return this.#work.abort(activationOver);
      case "finish":
        return this.#background(this.#finish(effect.ending));
      default:
        throw new Unreachable(effect);
    }
  }

  /** Work off the mailbox: its event comes back through the inbox, its failure ends this activation. */
  #background(work: Promise<loop.LoopEvent>): void {
    const { signal } = this.#work;
    work.then(
      (event) => this.#inbox.push({ type: "event", event }),
      (thrown) => {
        if (signal.aborted && thrown === signal.reason) return; // a tool of an ended turn
        this.#inbox.push({ type: "failed", error: toError(thrown) });
      },
    );
  }

  async #callModel(effect: loop.LoopEffect & { type: "call_model" }): Promise<loop.LoopEvent> {
    const outcome = await callModel({ ...this.#modelStep(), conclusion: effect.conclusion });
    return outcome.kind === "window_exceeded" ? this.#tooLong() : this.#afterModel(outcome);
  }

  async #afterModel(outcome: ModelOutcome): Promise<loop.LoopEvent> {
    switch (outcome.kind) {
      case "failed":
        return outcome.failure.code === "context_too_long" && !outcome.failure.started
          ? this.#tooLong()
          : { type: "model_failed", failure: outcome.failure };
      case "cancelled":
        return { type: "cancelled", reason: "user" }; // only ever after a cancellation: then ignored
      case "answered":
        break;
      default:
        throw new Unreachable(outcome);
    }
    const { answer } = outcome;
    this.#planned = answer.calls.length === 0 ? [] : planCalls(answer.calls, await this.#planContext());
    return { type: "answered", answer, calls: this.#planned.map(({ call }) => call) };
  }

  #tooLong(): loop.LoopEvent {
    const { state } = this.#machine;
    const compactions = state.name === "streaming" ? state.turn.compactions : loop.maxCompactions;
    if (compactions < loop.maxCompactions && !this.#run.ephemeral) return { type: "window_exceeded" };
    return { type: "model_failed", failure: tooLongFailure };
  }

  async #compact(): Promise<loop.LoopEvent> {
    const shortened = await compact(this.#modelStep());
    return shortened ? { type: "compacted" } : { type: "model_failed", failure: tooLongFailure };
  }

  async #record(effect: loop.LoopEffect & { type: "record_calls" }): Promise<loop.LoopEvent> {
    const event = await recordCalls(this.#toolStep(), effect.answer, this.#planned, effect);
    this.#recorded = true;
    this.#planned = this.#planned.map((planned) =>
      effect.starting.includes(planned.call.index) ? { ...planned, started: true } : planned,
    );
    return event;
  }

  async #ask(step: ToolStep, planned: PlannedCall, reason: string): Promise<loop.LoopEvent> {
    this.#question = await askApproval(step, planned, { reason, activeMs: this.#activeMs() });
    return { type: "asked" };
  }

  #suspend(): void {
    if (this.#question === null) throw new Error("a run cannot wait without a question");
    this.#exit = { kind: "waiting", approvalId: this.#question };
  }

  async #finish(ending: loop.Ending): Promise<loop.LoopEvent> {
    const { run, queued } = await endRun(this.#services, this.#run, {
      ending,
      shown: this.#live.segments.at(-1)?.text ?? "",
      recorded: this.#recorded,
      activeMs: this.#activeMs(),
    });
    this.#exit = { kind: "ended", run, queued };
    return { type: "finished" };
  }

  #withCall(
    index: number,
    act: (step: ToolStep, planned: PlannedCall) => Promise<loop.LoopEvent>,
  ): Promise<loop.LoopEvent> {
    const planned = this.#planned.find(({ call }) => call.index === index);
    if (planned === undefined) throw new Error(`call ${index} was never planned`);
    return act(this.#toolStep(), planned);
  }

  #modelStep(): ModelStep {
    return {
      services: this.#services,
      run: this.#run,
      live: this.#live,
      model: this.#model,
      profile: this.#profile,
      step: this.#step,
      conclusion: null,
      signal: this.#work.signal,
    };
  }

  #toolStep(): ToolStep {
    return {
      services: this.#services,
      run: this.#run,
      profile: this.#profile,
      step: this.#step,
      signal: this.#work.signal,
    };
  }

  async #planContext() {
    const { tools, store } = this.#services;
    const grants = await store.approvals.grants(this.#run.sessionId);
    return { run: this.#run, autonomy: this.#profile.autonomy, tools, grants };
  }

  #activeMs(): number {
    return Math.round(this.#run.activeMs + this.#services.clock.monotonic() - this.#startedAt);
  }
}

/** One for all: making an error records a stack, which costs more than most of what a turn does. */
const activationOver = new Cancelled("shutdown", "the activation is over");

const tooLongFailure = {
  code: "context_too_long",
  message: "the conversation does not fit the model's window",
  retryable: false,
  started: false,
  partial: "",
} as const;

/** Counts a stored step as if its calls had just settled, so that a restart does not forget repetitions. */
const recount = (turn: loop.Turn, step: StoredStep): loop.Turn =>
  step.calls.reduce(
    (t, call) =>
      call.result === null ? t : loop.count(t, outcomeOf(call.tool, call.arguments, call.result.text)),
    turn,
  );
