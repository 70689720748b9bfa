import type Database from "better-sqlite3";
import type { MessageId, RunId, SessionId } from "../../domain/ids.ts";
import type { WireMessage } from "../../domain/message.ts";
import type { Accepted, AcceptRun, NewRun } from "../ports.ts";
import { arrangeInput, type Joining, openCallsOf } from "./history.ts";
import type { Lane, LaneState } from "./lanes.ts";
import type { OpenRun, RunRef } from "./open-runs.ts";
import type { Parts } from "./parts.ts";
import type { RunEnds } from "./run-ends.ts";
import { type InputRow, inputColumns, runColumns, type RunRow } from "./run-row.ts";
import { parameter } from "./statement.ts";
import { type EncodedMessage, encodeMessage, joinLines, splitLines } from "./wire.ts";

/** `AcceptRun` with its JSON made and its attachments counted, on the caller's thread. */
export interface EncodedAccept extends Omit<AcceptRun, "run" | "messageIds"> {
  readonly run: Omit<NewRun, "input">;
  /** The input as JSON, without its messages. */
  readonly input: string;
  readonly messages: readonly EncodedMessage[];
  readonly attachments: readonly string[];
}

export type AcceptOutcome =
  | { readonly kind: "started" | "queued" }
  | { readonly kind: "replayed"; readonly runId: RunId }
  | Extract<Accepted, { readonly kind: "refused" }>;

/** A run that a caller takes on: the row of this very moment, because `attempt` is the fence. */
export type TakenRun = RunRow & InputRow;

/** Where and how a new run begins: the columns that differ between a queued run and a started one. */
interface Beginning {
  readonly state: "queued" | "running";
  readonly attempt: 0 | 1;
  readonly startedAt: number | null;
  readonly inputSeq: number | null;
  readonly inputCount: number | null;
  readonly messageIds: string | null;
  readonly conversation: string | null;
}

interface NewRunColumns extends Beginning {
  readonly id: string;
  readonly session: number;
  readonly principal: string;
  readonly agent: string;
  readonly ephemeral: 0 | 1;
  readonly keyed: 0 | 1;
  readonly createdAt: number;
  readonly firstEvent: number;
  readonly input: string;
}

/** How runs come into a lane and get to work; how they end is in `RunEnds`. */
export class RunCommands {
  readonly #parts: Parts;
  readonly #ends: RunEnds;
  readonly #insert: Database.Statement<[NewRunColumns]>;
  readonly #start: Database.Statement<[number, number | null, number | null, string | null, number]>;
  readonly #takeOver: Database.Statement<[number]>;
  readonly #input: Database.Statement<[number], InputRow & { readonly messageIds: string | null }>;
  readonly #taken: Database.Statement<[number], TakenRun>;
  readonly #queuedIn: Database.Statement<[number], number>;
  readonly #queuedInAll: Database.Statement<[], number>;
  readonly #useAttachment: Database.Statement<[number, string]>;

  constructor(db: Database.Database, parts: Parts, ends: RunEnds) {
    this.#parts = parts;
    this.#ends = ends;
    this.#insert = db.prepare(`
      INSERT INTO runs (id, session, principal, agent, kind, state, ephemeral, keyed, attempt, created_at,
        started_at, first_event, input_seq, input_count, message_ids, input, conversation)
      VALUES (@id, @session, @principal, @agent, 'chat', @state, @ephemeral, @keyed, @attempt, @createdAt,
        @startedAt, @firstEvent, @inputSeq, @inputCount, @messageIds, @input, @conversation)`);
    this.#start = db.prepare(`
      UPDATE runs SET state = 'running', attempt = 1, started_at = ?, input_seq = ?, input_count = ?,
        message_ids = NULL, conversation = ? WHERE key = ?`);
    this.#takeOver = db.prepare(
      "UPDATE runs SET state = 'running', attempt = attempt + 1, approval = NULL WHERE key = ?",
    );
    this.#input = db.prepare("SELECT input, conversation, message_ids AS messageIds FROM runs WHERE key = ?");
    this.#taken = db.prepare(`
      SELECT ${runColumns}, ${inputColumns} FROM runs r JOIN sessions s ON s.key = r.session WHERE r.key = ${parameter}`);
    this.#queuedIn = db
      .prepare<[number], number>("SELECT count(*) FROM runs WHERE session = ? AND state = 'queued'")
      .pluck();
    this.#queuedInAll = db.prepare<[], number>("SELECT count(*) FROM runs WHERE state = 'queued'").pluck();
    this.#useAttachment = db.prepare(
      "INSERT OR IGNORE INTO attachment_uses (session, attachment) VALUES (?, ?)",
    );
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
    if (starts) this.#insertStarted(lane, request);
    else this.#insertQueued(lane, request);
    for (const id of request.attachments) this.#useAttachment.run(lane.key, id);
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
    if (next !== undefined) this.#startQueued(next, request.at);
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

  #insertStarted(lane: Lane, request: EncodedAccept): void {
    const { run, at } = request;
    const joining = run.ephemeral ? null : arrangeInput(openCallsOf(lane.openCalls), request.messages);
    const key = this.#insertRun(lane, request, {
      state: "running",
      attempt: 1,
      startedAt: at,
      ...placeOf(lane, joining),
      messageIds: null,
      conversation: joining === null ? linesOf(request.messages) : null,
    });
    this.#begin(lane, { key, id: run.id }, joining, at);
  }

  #insertQueued(lane: Lane, request: EncodedAccept): void {
    const key = this.#insertRun(lane, request, {
      state: "queued",
      attempt: 0,
      startedAt: null,
      ...placeOf(lane, null),
      messageIds: JSON.stringify(request.messages.map((message) => message.id)),
      conversation: linesOf(request.messages),
    });
    this.#parts.journal.append(lane, { key, id: request.run.id }, request.at, { type: "run.queued" });
  }

  #insertRun(lane: Lane, { run, idempotency, input, at }: EncodedAccept, beginning: Beginning): number {
    const inserted = this.#insert.run({
      ...beginning,
      id: run.id,
      session: lane.key,
      principal: run.principal,
      agent: run.agent,
      ephemeral: run.ephemeral ? 1 : 0,
      keyed: idempotency === null ? 0 : 1,
      createdAt: at,
      firstEvent: lane.lastEvent + 1,
      input,
    });
    return Number(inserted.lastInsertRowid);
  }

  #startQueued(run: OpenRun, at: number): void {
    const { lane } = run;
    const row = this.#input.get(run.key);
    const conversation = row?.conversation ?? "";
    const messages = queuedMessages(conversation, row?.messageIds ?? null);
    const joining = run.ephemeral ? null : arrangeInput(openCallsOf(lane.openCalls), messages);
    const { inputSeq, inputCount } = placeOf(lane, joining);
    this.#start.run(at, inputSeq, inputCount, joining === null ? conversation : null, run.key);
    this.#begin(lane, run, joining, at);
  }

  #begin(lane: Lane, run: RunRef, joining: Joining | null, at: number): void {
    this.#parts.journal.append(lane, run, at, { type: "run.started", attempt: 1 });
    if (joining !== null) this.#parts.history.join(lane, run, at, joining);
  }

  #take(run: RunRef): TakenRun {
    const row = this.#taken.get(run.key);
    if (row === undefined) throw new Error(`run ${run.id} vanished inside its own transaction`);
    return row;
  }
}

/** Where in the history the input is once it has joined; nowhere where it does not. */
function placeOf(lane: Lane, joining: Joining | null): Pick<Beginning, "inputSeq" | "inputCount"> {
  if (joining === null) return { inputSeq: null, inputCount: null };
  return { inputSeq: lane.nextSeq + joining.unanswered.length, inputCount: joining.messages.length };
}

const linesOf = (messages: readonly EncodedMessage[]): string => joinLines(messages.map(({ wire }) => wire));

function queuedMessages(conversation: string, idColumn: string | null): readonly EncodedMessage[] {
  const ids: readonly MessageId[] = idColumn === null ? [] : JSON.parse(idColumn);
  return splitLines(conversation).flatMap((wire, index) => {
    const message: WireMessage = JSON.parse(wire);
    const id = ids[index];
    return id === undefined ? [] : [encodeMessage(id, message)];
  });
}
