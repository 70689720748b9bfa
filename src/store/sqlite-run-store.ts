import type Database from "better-sqlite3";
import { BeamclawError } from "../domain/error-catalogue.ts";
import type { RunId, SessionId } from "../domain/ids.ts";
import type { Run, RunState } from "../domain/run.ts";
import type {
  Accepted,
  AcceptRun,
  Fenced,
  Finished,
  FinishRun,
  Paged,
  RunFilter,
  RunStore,
} from "./ports.ts";
import type { SqliteAttachmentStore } from "./sqlite-attachment-store.ts";
import { encodeAccept, newRun } from "./sqlite/encoded-accept.ts";
import { isOneOf, PageQuery } from "./sqlite/page.ts";
import type { TakenRun } from "./sqlite/run-commands.ts";
import {
  decodeInput,
  decodeRun,
  type InputRow,
  inputColumns,
  runColumns,
  type RunRow,
} from "./sqlite/run-row.ts";
import { guarded, parameter } from "./sqlite/statement.ts";
import type { Writer } from "./writer.ts";

interface OpenRow {
  readonly sessionId: SessionId;
  readonly state: RunState;
}

/** Runs by their rows. What a caller already knows is not read back, what it rarely looks at is read late. */
export class SqliteRunStore implements RunStore {
  readonly #db: Database.Database;
  readonly #writer: Writer;
  readonly #attachments: SqliteAttachmentStore;
  readonly #get: Database.Statement<[string], TakenRun>;
  readonly #input: Database.Statement<[string], InputRow>;
  readonly #open: Database.Statement<[], OpenRow>;

  constructor(db: Database.Database, writer: Writer, attachments: SqliteAttachmentStore) {
    this.#db = db;
    this.#writer = writer;
    this.#attachments = attachments;
    const from = "FROM runs r JOIN sessions s ON s.key = r.session";
    this.#get = db.prepare(`SELECT ${runColumns}, ${inputColumns} ${from} WHERE r.id = ${parameter}`);
    this.#input = db.prepare(`SELECT ${inputColumns} FROM runs r WHERE r.id = ?`);
    this.#open = db.prepare(`
      SELECT s.id AS sessionId, o.state FROM (
        SELECT key, session, state FROM runs WHERE state = 'queued'
        UNION ALL
        SELECT key, session, state FROM runs WHERE state IN ('running', 'waiting', 'retrying')
      ) o JOIN sessions s ON s.key = o.session ORDER BY o.key`);
  }

  async accept(request: AcceptRun): Promise<Accepted> {
    const { messages } = request.run.input;
    // An ephemeral run is one blob that goes as a whole; only what stays is worth a file.
    const kept = request.run.ephemeral ? messages : await this.#attachments.takeOut(messages);
    const input = { ...request.run.input, messages: kept };
    const outcome = await this.#writer.execute("accept", encodeAccept(request, input));
    if (outcome.kind === "refused") return outcome;
    if (outcome.kind !== "replayed") return { kind: outcome.kind, run: newRun(request, input, outcome.kind) };
    const run = await this.get(outcome.runId);
    if (run === null) throw new BeamclawError("not_found", "the request's run has been deleted meanwhile");
    return { kind: "replayed", run };
  }

  async startNext(
    sessionId: SessionId,
    options: { readonly queuedAfter: number; readonly at: number },
  ): Promise<Run | null> {
    return takenRun(await this.#writer.execute("startNext", { sessionId, ...options }));
  }

  async resume(runId: RunId, at: number): Promise<Run | null> {
    return takenRun(await this.#writer.execute("resume", { runId, at }));
  }

  async finish(request: FinishRun): Promise<Finished | Fenced> {
    const outcome = await this.#writer.execute("finish", request);
    if (outcome.kind === "refused") return outcome;
    return { kind: "finished", run: this.#lazily(outcome.row), queued: outcome.queued };
  }

  async get(runId: RunId): Promise<Run | null> {
    return takenRun(guarded(() => this.#get.get(runId)) ?? null);
  }

  async list(filter: RunFilter): Promise<Paged<Run>> {
    const { principal, sessionId, states } = filter;
    const query = new PageQuery(filter.page, "r.key");
    if (principal !== undefined) query.where("r.principal = ?", principal);
    if (sessionId !== undefined) query.where("s.id = ?", sessionId);
    if (states !== undefined) query.where(isOneOf("r.state", states), ...states);
    const sql = query.sql(`SELECT ${runColumns} FROM runs r JOIN sessions s ON s.key = r.session`);
    const rows = guarded(() => this.#db.prepare<unknown[], RunRow>(sql).all(...query.parameters));
    return query.page(rows, (row) => this.#lazily(row));
  }

  async openSessions(): ReturnType<RunStore["openSessions"]> {
    const bySession = new Map<SessionId, RunState[]>();
    for (const { sessionId, state } of guarded(() => this.#open.all())) {
      const states = bySession.get(sessionId);
      if (states === undefined) bySession.set(sessionId, [state]);
      else states.push(state);
    }
    return [...bySession].map(([sessionId, states]) => ({ sessionId, states }));
  }

  async purge(before: number, limit: number): Promise<number> {
    const { rows, attachments } = await this.#writer.execute("purge", { before, limit });
    this.#attachments.removeFiles(attachments);
    return rows;
  }

  /** The run's input is read when somebody looks at it; most readers of lists and ends never do. */
  #lazily(row: RunRow): Run {
    return decodeRun(row, () => {
      const input = guarded(() => this.#input.get(row.id));
      if (input === undefined) throw new BeamclawError("not_found", "the run has been deleted meanwhile");
      return decodeInput(input);
    });
  }
}

function takenRun(taken: TakenRun | null): Run | null {
  if (taken === null) return null;
  const input = decodeInput(taken);
  return decodeRun(taken, () => input);
}
