import type Database from "better-sqlite3";
import type { Principal, SessionId } from "../domain/ids.ts";
import type { Run } from "../domain/run.ts";
import type { Page, Paged, Session, SessionStore, StoredMessage, TranscriptEntry } from "./ports.ts";
import { openCallsOf } from "./sqlite/history.ts";
import { PageQuery } from "./sqlite/page.ts";
import { guarded, parameter } from "./sqlite/statement.ts";
import { refersToAttachment, splitLines, toolMessageWire } from "./sqlite/wire.ts";
import type { Writer } from "./writer.ts";

interface SessionRow extends Session {
  readonly key: number;
}

type TranscriptRow = [wire: string, extra: string | null, attachments: 0 | 1];

interface CallRow {
  readonly step: number;
  readonly callId: string;
  readonly result: string;
}

interface StepRow {
  readonly step: number;
  readonly wire: string;
  readonly extra: string | null;
}

const selectSessions = `
  SELECT key, id, principal, agent, channel, created_at AS createdAt, updated_at AS updatedAt,
    start_seq AS startSeq, next_seq AS messageCount FROM sessions`;

/** Messages in one page of a history. */
const maxMessages = 1_000;

/** Sessions of stateless runs are nobody's: they are neither listed nor found. */
const named = "ephemeral = 0";

/** Sessions and what the model sees of them: ready-made bytes, read in one range of the clustered table. */
export class SqliteSessionStore implements SessionStore {
  readonly #db: Database.Database;
  readonly #writer: Writer;
  readonly #get: Database.Statement<[string], SessionRow>;
  readonly #messages: Database.Statement<[string, number, number], StoredMessage>;
  readonly #history: Database.Statement<[string], TranscriptRow>;
  readonly #conversation: Database.Statement<[string], string | null>;
  readonly #steps: Database.Statement<[string], StepRow>;
  readonly #results: Database.Statement<[string], CallRow>;
  readonly #openCalls: Database.Statement<[string], string | null>;

  constructor(db: Database.Database, writer: Writer) {
    this.#db = db;
    this.#writer = writer;
    this.#get = db.prepare(`${selectSessions} WHERE id = ? AND ${named}`);
    this.#messages = db.prepare(`
      SELECT m.seq, m.id, r.id AS runId, CAST(m.wire AS TEXT) AS wire, m.created_at AS createdAt
      FROM messages m LEFT JOIN runs r ON r.key = m.run
      WHERE m.session = (SELECT key FROM sessions WHERE id = ${parameter}) AND m.seq > ${parameter} ORDER BY m.seq LIMIT ?`);
    this.#history = db
      .prepare<[string], TranscriptRow>(
        `SELECT CAST(m.wire AS TEXT), m.extra, m.attachments FROM sessions s
        JOIN messages m ON m.session = s.key AND m.seq >= s.start_seq WHERE s.id = ${parameter} ORDER BY m.seq`,
      )
      .raw();
    this.#conversation = db
      .prepare<[string], string | null>("SELECT conversation FROM runs WHERE id = ?")
      .pluck();
    this.#steps = db.prepare(`
      SELECT t.step, CAST(t.wire AS TEXT) AS wire, t.extra FROM runs r JOIN steps t ON t.run = r.key AND t.settled = 1
      WHERE r.id = ${parameter} ORDER BY t.step`);
    this.#results = db.prepare(`
      SELECT c.step, c.call_id AS callId, c.result FROM runs r JOIN calls c ON c.run = r.key
      WHERE r.id = ${parameter} AND c.result IS NOT NULL ORDER BY c.step, c.position`);
    this.#openCalls = db
      .prepare<[string], string | null>("SELECT open_calls FROM sessions WHERE id = ?")
      .pluck();
  }

  async get(id: SessionId): Promise<Session | null> {
    const row = guarded(() => this.#get.get(id));
    return row === undefined ? null : sessionOf(row);
  }

  async list(filter: { readonly principal?: Principal; readonly page: Page }): Promise<Paged<Session>> {
    const query = new PageQuery(filter.page, "key").where(named);
    if (filter.principal !== undefined) query.where("principal = ?", filter.principal);
    const sql = query.sql(selectSessions);
    const rows = guarded(() => this.#db.prepare<unknown[], SessionRow>(sql).all(...query.parameters));
    return query.page(rows, sessionOf);
  }

  async messages(id: SessionId, after: number, limit: number): Promise<readonly StoredMessage[]> {
    return guarded(() => this.#messages.all(id, after, Math.min(Math.max(1, limit), maxMessages)));
  }

  async transcript(run: Pick<Run, "id" | "sessionId" | "ephemeral">): Promise<readonly TranscriptEntry[]> {
    if (run.ephemeral) return guarded(() => this.#ephemeralTranscript(run.id));
    return guarded(() => this.#history.all(run.sessionId)).map(([wire, extra, attachments]) => ({
      wire,
      extra,
      attachments: attachments === 1,
    }));
  }

  async openClientCalls(id: SessionId): Promise<readonly string[]> {
    return openCallsOf(guarded(() => this.#openCalls.get(id)) ?? null);
  }

  moveStart(id: SessionId, move: Parameters<SessionStore["moveStart"]>[1]): Promise<boolean> {
    return this.#writer.execute("moveStart", { id, ...move });
  }

  reset(id: SessionId, at: number): ReturnType<SessionStore["reset"]> {
    return this.#writer.execute("resetSession", { id, at });
  }

  delete(id: SessionId): ReturnType<SessionStore["delete"]> {
    return this.#writer.execute("deleteSession", id);
  }

  #ephemeralTranscript(runId: string): TranscriptEntry[] {
    const entries = splitLines(this.#conversation.get(runId) ?? "").map((line) => entryOf(line));
    const results = this.#results.all(runId);
    for (const { step, wire, extra } of this.#steps.all(runId)) {
      entries.push({ wire, extra, attachments: false });
      for (const call of results) {
        if (call.step === step) entries.push(entryOf(toolMessageWire(call.callId, call.result)));
      }
    }
    return entries;
  }
}

function entryOf(wire: string): TranscriptEntry {
  return { wire, extra: null, attachments: refersToAttachment(wire) };
}

function sessionOf({ key: _key, ...session }: SessionRow): Session {
  return session;
}
