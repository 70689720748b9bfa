import type { Effect } from "../../src/domain/autonomy.ts";
import type { RunId, SessionId } from "../../src/domain/ids.ts";

export interface ModelCall {
  readonly effect: Effect;
  readonly client: boolean;
  state: "pending" | "started" | "settled";
  ran: boolean;
}

export interface ModelRun {
  readonly id: RunId;
  readonly sessionId: SessionId;
  readonly key: string | null;
  state: "queued" | "running" | "waiting" | "ended";
  failed: boolean;
  attempt: number;
  steps: ModelCall[][];
  asked: { readonly step: number; readonly index: number } | null;
}

/**
 * What the store promises about lanes, steps and keys, in memory and in the plainest way: every method says what
 * the same call of the store has to answer, and keeps what it changes.
 */
export class LaneModel {
  readonly runs: ModelRun[] = [];

  accept(id: RunId, sessionId: SessionId, start: boolean, key: string | null) {
    const held = key === null ? undefined : this.runs.findLast((run) => run.key === key);
    if (held !== undefined && !releases(held)) return { kind: "replayed", id: held.id };
    const starts = start && this.#open(sessionId).length === 0;
    const state = starts ? "running" : "queued";
    const attempt = starts ? 1 : 0;
    this.runs.push({ id, sessionId, key, state, failed: false, attempt, steps: [], asked: null });
    return { kind: starts ? "started" : "queued", id };
  }

  startNext(sessionId: SessionId): RunId | null {
    const open = this.#open(sessionId);
    const next = open[0];
    if (next === undefined || open.some((run) => run.state !== "queued")) return null;
    next.state = "running";
    next.attempt = 1;
    return next.id;
  }

  /** The new attempt; null where the run cannot be taken over. */
  resume(run: ModelRun): number | null {
    if (!isActive(run)) return null;
    run.state = "running";
    run.asked = null;
    run.attempt += 1;
    return run.attempt;
  }

  finish(run: ModelRun, attempt: number, failed: boolean): boolean {
    if (run.state === "ended" || run.attempt !== attempt) return false;
    run.state = "ended";
    run.failed = failed;
    run.asked = null;
    return true;
  }

  /** Whether the step settles at once; null where the writer is fenced off. */
  record(run: ModelRun, attempt: number, calls: readonly Omit<ModelCall, "state">[]): boolean | null {
    if (!mayWrite(run, attempt)) return null;
    run.steps.push(calls.map((call) => ({ ...call, state: call.ran ? "started" : "pending" })));
    return this.#settled(run);
  }

  startCall(run: ModelRun, attempt: number, index: number): boolean {
    const call = this.#ours(run, attempt, index);
    if (call === null || (call.state === "started" && call.effect !== "none")) return false;
    call.state = "started";
    call.ran = true;
    return true;
  }

  settle(run: ModelRun, attempt: number, index: number): boolean | null {
    const call = this.#ours(run, attempt, index);
    if (call === null) return null;
    call.state = "settled";
    return this.#settled(run);
  }

  ask(run: ModelRun, attempt: number, index: number): boolean {
    const call = mayWrite(run, attempt) ? run.steps.at(-1)?.[index] : undefined;
    if (call?.state !== "pending" || run.state !== "running") return false;
    run.state = "waiting";
    run.asked = { step: run.steps.length - 1, index };
    return true;
  }

  /** Whether the answer counts. A denial settles the call. */
  decide(run: ModelRun, denied: boolean): boolean {
    if (run.asked === null) return false;
    const call = run.steps[run.asked.step]?.[run.asked.index];
    if (denied && call !== undefined && !call.client) call.state = "settled";
    run.asked = null;
    return true;
  }

  delete(sessionId: SessionId): "deleted" | "not_found" | "session_busy" {
    if (this.#open(sessionId).length > 0) return "session_busy";
    const kept = this.runs.filter((run) => run.sessionId !== sessionId);
    const found = kept.length < this.runs.length;
    this.runs.splice(0, this.runs.length, ...kept);
    return found ? "deleted" : "not_found";
  }

  /** A step may be recorded when nothing of the last one is open, the client's calls included. */
  mayRecord(run: ModelRun): boolean {
    return (run.steps.at(-1) ?? []).every((call) => call.state === "settled");
  }

  #open(sessionId: SessionId): ModelRun[] {
    return this.runs.filter((run) => run.sessionId === sessionId && run.state !== "ended");
  }

  #ours(run: ModelRun, attempt: number, index: number): ModelCall | null {
    const call = mayWrite(run, attempt) ? run.steps.at(-1)?.[index] : undefined;
    return call === undefined || call.client || call.state === "settled" ? null : call;
  }

  #settled(run: ModelRun): boolean {
    return (run.steps.at(-1) ?? []).every((call) => call.client || call.state === "settled");
  }
}

const isActive = (run: ModelRun): boolean => run.state === "running" || run.state === "waiting";

const mayWrite = (run: ModelRun, attempt: number): boolean => isActive(run) && run.attempt === attempt;

/** A run that failed before any effect lets its key go. */
function releases(run: ModelRun): boolean {
  const effects = run.steps.flat().some((call) => call.ran && call.effect !== "none");
  return run.state === "ended" && run.failed && !effects;
}
