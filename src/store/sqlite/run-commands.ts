import type Database from "better-sqlite3";
import type { RunId, SessionId } from "../../domain/ids.ts";
import type { Accepted, AcceptRun } from "../ports.ts";
import type { EncodedAccept } from "./encoded-accept.ts";
import type { LaneState } from "./lanes.ts";
import type { Parts } from "./parts.ts";
import type { RunEnds } from "./run-ends.ts";
import { type InputRow, inputColumns, runColumns, type RunRow } from "./run-row.ts";
import { RunStarts } from "./run-starts.ts";
import { parameter } from "./statement.ts";

export type AcceptOutcome =
  | { readonly kind: "started" | "queued" }
  | { readonly kind: "replayed"; readonly runId: RunId }
  | Extract<Accepted, { readonly kind: "refused" }>;

/** A run that a caller takes on: the row of this very moment, because `attempt` is the fence. */
export type TakenRun = RunRow & InputRow;

/** Who may run, and when: a lane has one active run, and starts the others in the order of their acceptance. */
export class RunCommands {
  readonly #parts: Parts;
  readonly #starts: RunStarts;
  readonly #ends: RunEnds;
  readonly #takeOver: Database.Statement<[number]>;
  readonly #taken: Database.Statement<[number], TakenRun>;
  readonly #queuedIn: Database.Statement<[number], number>;
  readonly #queuedInAll: Database.Statement<[], number>;

  constructor(db: Database.Database, parts: Parts, ends: RunEnds) {
    this.#parts = parts;
    this.#starts = new RunStarts(db, parts);
    this.#ends = ends;
    this.#takeOver = db.prepare(
      "UPDATE runs SET state = 'running', attempt = attempt + 1, approval = NULL WHERE key = ?",
    );
    this.#taken = db.prepare(`
      SELECT ${runColumns}, ${inputColumns} FROM runs r JOIN sessions s ON s.key = r.session WHERE r.key = ${parameter}`);
    this.#queuedIn = db
      .prepare<[number], number>("SELECT count(*) FROM runs WHERE session = ? AND state = 'queued'")
      .pluck();
    this.#queuedInAll = db.prepare<[], number>("SELECT count(*) FROM runs WHERE state = 'queued'").pluck();
  }

  accept(request: EncodedAccept): AcceptOutcome {
    const { run, idempotency, at } = request;
    const { keys, lanes } = this.#parts;
    const seen = idempotency === null ? null : keys.look(idempotency, at);
    if (seen?.kind === "conflict") return { kind: "refused", code: "idempotency_conflict" };
    if (seen?.kind === "replay") return { kind: "replayed", runId: seen.runId };
    const known = lanes.find(run.sessionId);
    const starts = request.start && known?.active !== 1 && known?.queued !== 1;
    const refusal = starts ? null : this.#refusal(known, request.limits);
    if (refusal !== null) return { kind: "refused", code: refusal };

    const lane = known ?? lanes.create(run, at);
    if (starts) this.#starts.insertStarted(lane, request);
    else this.#starts.insertQueued(lane, request);
    lanes.save(lane, at);
    if (idempotency !== null) keys.put(idempotency, run.id, at);
    return { kind: starts ? "started" : "queued" };
  }

  startNext(request: {
    readonly sessionId: SessionId;
    readonly queuedAfter: number;
    readonly at: number;
  }): TakenRun | null {
    const { runs, lanes } = this.#parts;
    if (lanes.find(request.sessionId)?.active !== 0) return null;
    const queued = runs.queuedOf(request.sessionId);
    const stale = queued.filter((run) => run.row.createdAt < request.queuedAfter);
    for (const run of stale) this.#ends.expireQueued(run, request.at);
    const next = queued.find((run) => !stale.includes(run));
    if (next !== undefined) this.#starts.startQueued(next, request.at);
    const lane = queued[0]?.lane;
    if (lane !== undefined) lanes.save(lane, request.at);
    return next === undefined ? null : this.#take(next);
  }

  /** A question that is still open is withdrawn: whoever takes the run over asks again. */
  resume(request: { readonly runId: RunId; readonly at: number }): TakenRun | null {
    const { runs, lanes, journal } = this.#parts;
    const run = runs.find(request.runId);
    if (run === null || run.row.state === "queued") return null;
    this.#ends.withdrawQuestion(run, request.at);
    this.#takeOver.run(run.key);
    journal.append(run.lane, run, request.at, { type: "run.resumed", attempt: run.row.attempt + 1 });
    lanes.save(run.lane, request.at);
    return this.#take(run);
  }

  #refusal(lane: LaneState | null, limits: AcceptRun["limits"]): "queue_full" | "overloaded" | null {
    const inSession = lane === null ? 0 : (this.#queuedIn.get(lane.key) ?? 0);
    if (inSession >= limits.perSession) return "queue_full";
    return (this.#queuedInAll.get() ?? 0) >= limits.total ? "overloaded" : null;
  }

  #take(run: { readonly key: number }): TakenRun {
    const row = this.#taken.get(run.key);
    if (row === undefined) throw new Error("a run vanished inside its own transaction");
    return row;
  }
}
