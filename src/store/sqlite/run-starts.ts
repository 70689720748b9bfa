import type Database from "better-sqlite3";
import type { MessageId } from "../../domain/ids.ts";
import type { WireMessage } from "../../domain/message.ts";
import type { EncodedAccept } from "./encoded-accept.ts";
import { arrangeInput, type Joining, openCallsOf } from "./history.ts";
import type { Lane } from "./lanes.ts";
import type { OpenRun, RunRef } from "./open-runs.ts";
import type { Parts } from "./parts.ts";
import { type EncodedMessage, encodeMessage, joinLines, splitLines } from "./wire.ts";

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

/** The input of a queued run; both columns are set as long as it waits. */
interface QueuedInput {
  readonly conversation: string;
  readonly messageIds: string;
}

/** New rows of runs, and the moment at which a run's input becomes part of its session's history. */
export class RunStarts {
  readonly #parts: Parts;
  readonly #insert: Database.Statement<[NewRunColumns]>;
  readonly #start: Database.Statement<[number, number | null, number | null, string | null, number]>;
  readonly #input: Database.Statement<[number], QueuedInput>;
  readonly #useAttachment: Database.Statement<[number, string]>;

  constructor(db: Database.Database, parts: Parts) {
    this.#parts = parts;
    this.#insert = db.prepare(`
      INSERT INTO runs (id, session, principal, agent, kind, state, ephemeral, keyed, attempt, created_at,
        started_at, first_event, input_seq, input_count, message_ids, input, conversation)
      VALUES (@id, @session, @principal, @agent, 'chat', @state, @ephemeral, @keyed, @attempt, @createdAt,
        @startedAt, @firstEvent, @inputSeq, @inputCount, @messageIds, @input, @conversation)`);
    this.#start = db.prepare(`
      UPDATE runs SET state = 'running', attempt = 1, started_at = ?, input_seq = ?, input_count = ?,
        message_ids = NULL, conversation = ? WHERE key = ?`);
    this.#input = db.prepare("SELECT conversation, message_ids AS messageIds FROM runs WHERE key = ?");
    this.#useAttachment = db.prepare(
      "INSERT OR IGNORE INTO attachment_uses (session, attachment) VALUES (?, ?)",
    );
  }

  /** The caller saves the lane. */
  insertStarted(lane: Lane, request: EncodedAccept): void {
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

  insertQueued(lane: Lane, request: EncodedAccept): void {
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

  startQueued(run: OpenRun, at: number): void {
    const { lane } = run;
    const row = this.#input.get(run.key);
    const joining =
      row === undefined || run.ephemeral
        ? null
        : arrangeInput(openCallsOf(lane.openCalls), queuedMessages(row.conversation, row.messageIds));
    const { inputSeq, inputCount } = placeOf(lane, joining);
    const conversation = joining === null ? (row?.conversation ?? null) : null;
    this.#start.run(at, inputSeq, inputCount, conversation, run.key);
    this.#begin(lane, run, joining, at);
  }

  #insertRun(
    lane: Lane,
    { run, idempotency, input, attachments, at }: EncodedAccept,
    beginning: Beginning,
  ): number {
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
    for (const id of attachments) this.#useAttachment.run(lane.key, id);
    return Number(inserted.lastInsertRowid);
  }

  #begin(lane: Lane, run: RunRef, joining: Joining | null, at: number): void {
    this.#parts.journal.append(lane, run, at, { type: "run.started", attempt: 1 });
    if (joining !== null) this.#parts.history.join(lane, run, at, joining);
  }
}

/** Where in the history the input is once it has joined; nowhere where it does not. */
function placeOf(lane: Lane, joining: Joining | null): Pick<Beginning, "inputSeq" | "inputCount"> {
  if (joining === null) return { inputSeq: null, inputCount: null };
  return { inputSeq: lane.nextSeq + joining.unanswered.length, inputCount: joining.messages.length };
}

const linesOf = (messages: readonly EncodedMessage[]): string => joinLines(messages.map(({ wire }) => wire));

function queuedMessages(conversation: string, idColumn: string): readonly EncodedMessage[] {
  const ids: readonly MessageId[] = JSON.parse(idColumn);
  return splitLines(conversation).flatMap((wire, index) => {
    const message: WireMessage = JSON.parse(wire);
    const id = ids[index];
    return id === undefined ? [] : [encodeMessage(id, message)];
  });
}
