import type Database from "better-sqlite3";
import type { SessionId } from "../../domain/ids.ts";
import type { NewRun } from "../ports.ts";

/**
 * The write side of one session during one command. The counters are advanced here and written back once, by
 * `Lanes.save`; a command that appends anything must end with it.
 */
export interface Lane {
  readonly key: number;
  readonly id: SessionId;
  /** Seq of the next message. */
  nextSeq: number;
  /** Seq of the last event. */
  lastEvent: number;
  /** Ids of the calls that the client has to answer, as a JSON array. */
  openCalls: string | null;
}

/** A lane and whether it has work. */
export interface LaneState extends Lane {
  readonly active: 0 | 1;
  readonly queued: 0 | 1;
}

export class Lanes {
  readonly #find: Database.Statement<[string], LaneState>;
  readonly #insert: Database.Statement<[string, string, string, string, number, number, number]>;
  readonly #save: Database.Statement<[number, number, string | null, number, number]>;

  constructor(db: Database.Database) {
    this.#find = db.prepare(`
      SELECT key, id, next_seq AS nextSeq, last_event AS lastEvent, open_calls AS openCalls,
        EXISTS (SELECT 1 FROM runs WHERE session = sessions.key
          AND state IN ('running', 'waiting', 'retrying')) AS active,
        EXISTS (SELECT 1 FROM runs WHERE session = sessions.key AND state = 'queued') AS queued
      FROM sessions WHERE id = ?`);
    this.#insert = db.prepare(`
      INSERT INTO sessions (id, principal, agent, channel, ephemeral, created_at, updated_at)
      VALUES (?, ?, ?, ?, ?, ?, ?)`);
    this.#save = db.prepare(
      "UPDATE sessions SET next_seq = ?, last_event = ?, open_calls = ?, updated_at = ? WHERE key = ?",
    );
  }

  find(id: SessionId): LaneState | null {
    return this.#find.get(id) ?? null;
  }

  create(run: NewRunHead, at: number): Lane {
    const ephemeral = run.ephemeral ? 1 : 0;
    const { sessionId: id, principal, agent, channel } = run;
    const { lastInsertRowid } = this.#insert.run(id, principal, agent, channel, ephemeral, at, at);
    return { key: Number(lastInsertRowid), id, nextSeq: 0, lastEvent: 0, openCalls: null };
  }

  save(lane: Lane, at: number): void {
    this.#save.run(lane.nextSeq, lane.lastEvent, lane.openCalls, at, lane.key);
  }
}

export type NewRunHead = Omit<NewRun, "input">;
