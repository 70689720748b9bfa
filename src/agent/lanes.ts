/**
 * The lanes that work in this process: at most one active run a session, at most `concurrentRuns` in all. A lane
 * with nothing to do is not here; its next message finds everything in the store.
 */
import type { RunId, SessionId } from "../domain/ids.ts";
import { isEnded, type Run } from "../domain/run.ts";
import { backoffDelay } from "../kernel/backoff.ts";
import { toError, Unreachable } from "../kernel/errors.ts";
import { type DynamicChild, DynamicSupervisor } from "../kernel/dynamic-supervisor.ts";
import { Cancelled, onAbort } from "../kernel/scope.ts";
import type { Child } from "../kernel/supervisor.ts";
import { type LiveRun, LiveRunWriter } from "./live-run.ts";
import { endIdleRun, runError } from "./run-end.ts";
import { RunScope, type ScopeExit } from "./run-scope.ts";
import type { RunServices } from "./run-services.ts";

export interface LaneSettings {
  /** Runs that work at the same time, 1 or more. */
  readonly concurrentRuns: number;
  readonly queue: { readonly perSession: number; readonly total: number; readonly ttlSeconds: number };
}

interface ActiveRun {
  readonly run: Run;
  readonly scope: RunScope;
  /** Resolves when its end has been told to its readers. */
  readonly done: Promise<void>;
}

/** What a lane is ready for: to take a run up again, or (null) to start its next queued one. */
type Readiness = RunId | null;

const retryPolicy = { baseMs: 500, maxMs: 30_000, factor: 2 };

export class Lanes {
  readonly #services: RunServices;
  readonly #settings: LaneSettings;
  readonly #supervisor: DynamicSupervisor<RunScope>;
  readonly #active = new Map<SessionId, ActiveRun>();
  /** Lanes that wait for a slot, in order: whoever has just run goes to the end. */
  readonly #ready = new Map<SessionId, Readiness>();
  readonly #live = new Map<RunId, LiveRunWriter>();
  #slots: number;
  #open = false;
  /** Failures of the store in a row; the next attempt waits longer after each. */
  #troubles = 0;

  constructor(services: RunServices, settings: LaneSettings) {
    this.#services = services;
    this.#settings = settings;
    this.#slots = settings.concurrentRuns;
    this.#supervisor = new DynamicSupervisor({
      id: "sessions",
      maxChildren: settings.concurrentRuns * 2, // a lane that is about to leave does not keep the next from coming
      clock: services.clock,
      report: (report) => services.obs.events.childExit(report),
    });
  }

  /** The supervised child: in service until its signal aborts; then every run is left as it is stored. */
  readonly run: Child = async (context) => {
    const unsubscribe = this.#services.store.events.subscribe((events) => {
      for (const { runId, body } of events) {
        if (runId !== null && body.type === "run.expired") this.#background(this.#endElsewhere(runId));
      }
    });
    this.#open = true;
    try {
      await this.#supervisor.run(context);
    } finally {
      this.#open = false;
      unsubscribe();
      for (const live of this.#live.values()) live.interrupt(runError("shutting_down"));
      this.#live.clear();
    }
  };

  /** Lanes that work. */
  get size(): number {
    return this.#active.size;
  }

  /** True if a slot was free; the taker launches a run with it or releases it. */
  takeSlot(): boolean {
    if (this.#slots === 0 || !this.#open) return false;
    this.#slots -= 1;
    return true;
  }

  releaseSlot(): void {
    this.#slots += 1;
    this.#pump();
  }

  active(runId: RunId): ActiveRun | undefined {
    const live = this.#live.get(runId);
    const active = live === undefined ? undefined : this.#active.get(live.sessionId);
    return active?.run.id === runId ? active : undefined;
  }

  live(runId: RunId): LiveRun | undefined {
    return this.#live.get(runId);
  }

  /** Works on a run that the store has just started; the caller has taken a slot for it. */
  launch(run: Run): LiveRun {
    const live = this.#liveOf(run);
    const started = this.#supervisor.start(run.sessionId, () => this.#activation(run, live));
    if (started.kind === "started") {
      this.#services.obs.events.agentStart({
        session_id: run.sessionId,
        user_id: run.principal,
        run_id: run.id,
        trace_id: this.#services.traceId(run.id),
      });
    } else if (started.kind === "existing" || started.reason === "leaving") {
      // The lane's former run has ended in the store and is just leaving.
      this.#background(this.#supervisor.gone(run.sessionId).then(() => void this.launch(run)));
    } else {
      this.#slots += 1;
      live.interrupt(runError("shutting_down")); // taken up again at the next start
      this.#live.delete(run.id);
    }
    return live;
  }

  enqueue(run: Run): LiveRun {
    const live = this.#liveOf(run);
    this.#services.obs.events.runQueued({ session_id: run.sessionId, run_id: run.id });
    this.ready(run.sessionId);
    return live;
  }

  /** The session's next queued run may start as soon as its lane and a slot are free. */
  ready(sessionId: SessionId): void {
    if (!this.#ready.has(sessionId)) this.#ready.set(sessionId, null);
    this.#pump();
  }

  /** Takes a stored run up again as soon as its lane and a slot are free. */
  resume(run: Run): LiveRun {
    const live = this.#liveOf(run);
    this.#ready.set(run.sessionId, run.id);
    this.#pump();
    return live;
  }

  /** Ends a run that is not active here. False if it had ended meanwhile. */
  async endIdle(run: Run, end: Parameters<typeof endIdleRun>[2]): Promise<boolean> {
    const finished = await endIdleRun(this.#services, run, end);
    if (finished === null) return false;
    this.#live.get(run.id)?.end({ kind: "ended", run: finished.run });
    this.#live.delete(run.id);
    if (finished.queued) this.ready(run.sessionId);
    return true;
  }

  /**
   * Starts no further run and resolves when none works any more. When `signal` aborts, those that still work are left
   * as they are stored.
   */
  async quiet(signal: AbortSignal): Promise<void> {
    this.#open = false;
    using _ = onAbort(signal, () => {
      for (const sessionId of this.#active.keys())
        this.#background(this.#supervisor.stop(sessionId, new Cancelled("shutdown")));
    });
    await Promise.all([...this.#active.values()].map(({ done }) => done));
  }

  #activation(run: Run, live: LiveRunWriter): DynamicChild<RunScope> {
    const scope = new RunScope(this.#services, run, live);
    const { promise: done, resolve } = Promise.withResolvers<void>();
    this.#active.set(run.sessionId, { run, scope, done });
    return {
      value: scope,
      shutdownMs: Infinity, // the scope's own children have deadlines
      run: async ({ signal, ready }) => {
        ready();
        await this.#settle(run, live, await scope.run(signal));
        resolve();
      },
    };
  }

  #liveOf(run: Run): LiveRunWriter {
    const known = this.#live.get(run.id);
    if (known !== undefined) return known;
    const live = new LiveRunWriter(run);
    this.#live.set(run.id, live);
    return live;
  }

  /** Gives free slots to ready lanes, oldest first; a lane that still works keeps its place. */
  #pump(): void {
    for (const [sessionId, runId] of this.#ready) {
      if (this.#slots === 0 || !this.#open) return;
      if (this.#active.has(sessionId)) continue;
      this.#ready.delete(sessionId);
      this.#slots -= 1;
      this.#background(this.#activate(sessionId, runId));
    }
  }

  /** Starts or resumes one run with the slot that was taken for it. */
  async #activate(sessionId: SessionId, runId: Readiness): Promise<void> {
    const { store, clock } = this.#services;
    const at = clock.now();
    try {
      const queuedAfter = at - this.#settings.queue.ttlSeconds * 1000;
      const run =
        runId === null
          ? await store.runs.startNext(sessionId, { queuedAfter, at })
          : await store.runs.resume(runId, at);
      this.#troubles = 0;
      if (run !== null) return void this.launch(run);
      this.releaseSlot();
      if (runId !== null) {
        await this.#endElsewhere(runId);
        this.ready(sessionId);
      }
    } catch (thrown) {
      this.releaseSlot();
      this.#later(sessionId, runId, toError(thrown));
    }
  }

  /** The activation of a run is over: tell its readers, free its slot, see who is next. */
  async #settle(run: Run, live: LiveRunWriter, exit: ScopeExit): Promise<void> {
    let again: Readiness | undefined;
    try {
      again = await this.#conclude(run, live, exit);
    } catch (thrown) {
      again = run.id;
      this.#interrupt(run.id, live, toError(thrown));
    }
    if (this.#active.get(run.sessionId)?.run.id === run.id) this.#active.delete(run.sessionId);
    this.#slots += 1;
    if (again !== undefined && exit.kind === "store_trouble") this.#later(run.sessionId, again, exit.error);
    else if (again !== undefined) this.#ready.set(run.sessionId, again);
    this.#pump();
  }

  /** Returns what the lane is ready for next; undefined: nothing. */
  async #conclude(run: Run, live: LiveRunWriter, exit: ScopeExit): Promise<Readiness | undefined> {
    const { store } = this.#services;
    switch (exit.kind) {
      case "ended":
        this.#end(live, exit.run);
        return exit.queued || this.#ready.has(run.sessionId) ? null : undefined;
      case "waiting": {
        const approval = await store.approvals.get(exit.approvalId);
        const stored = await store.runs.get(run.id);
        if (approval === null || stored === null || approval.state !== "pending") return run.id;
        live.end({ kind: "waiting", run: stored, approval });
        this.#live.delete(run.id);
        return this.#ready.get(run.sessionId);
      }
      case "fenced":
        await this.#endElsewhere(run.id);
        return this.#ready.get(run.sessionId) ?? null;
      case "store_trouble":
        this.#interrupt(run.id, live, exit.error);
        return run.id;
      case "stopped":
        live.interrupt(runError("shutting_down"));
        return undefined;
      case "crashed":
        await this.endIdle((await store.runs.get(run.id)) ?? run, {
          state: "failed",
          reason: "quarantined",
          error: runError("quarantined"),
          unsettledResult: "Not finished: the session crashed repeatedly.",
        });
        return this.#ready.get(run.sessionId);
      default:
        throw new Unreachable(exit);
    }
  }

  #end(live: LiveRunWriter, run: Run): void {
    live.end({ kind: "ended", run });
    this.#live.delete(run.id);
  }

  /** Readers of a run learn of an end that was not written by its own loop. */
  async #endElsewhere(runId: RunId): Promise<void> {
    const live = this.#live.get(runId);
    if (live === undefined) return;
    const run = await this.#services.store.runs.get(runId);
    if (run !== null && isEnded(run.state)) this.#end(live, run);
  }

  /** The run stays open in the store; whoever follows it now is told that it cannot go on at the moment. */
  #interrupt(runId: RunId, live: LiveRunWriter, error: Error): void {
    this.#services.obs.events.storeTrouble({ error: error.message });
    live.interrupt(runError("store_unavailable"));
    this.#live.delete(runId);
  }

  #later(sessionId: SessionId, readiness: Readiness, error: Error): void {
    this.#services.obs.events.storeTrouble({ error: error.message });
    const delay = backoffDelay(retryPolicy, this.#troubles, Math.random);
    this.#troubles += 1;
    this.#services.clock.setTimer(delay, () => {
      this.#ready.set(sessionId, readiness);
      this.#pump();
    });
  }

  /** Work whose failures have been dealt with where they arise; what still rejects is a defect. */
  #background(work: Promise<void>): void {
    work.catch((thrown: unknown) =>
      this.#services.obs.events.defect({ where: "lanes", error: toError(thrown).message }),
    );
  }
}
