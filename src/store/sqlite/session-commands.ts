import type Database from "better-sqlite3";
import type { SessionId } from "../../domain/ids.ts";
import type { Parts } from "./parts.ts";

export interface MoveStart {
  readonly id: SessionId;
  readonly expected: number;
  readonly to: number;
  readonly at: number;
}

export interface ResetSession {
  readonly id: SessionId;
  readonly at: number;
}

/** Changes of whole sessions; their messages come and go with runs only. */
export class SessionCommands {
  readonly #parts: Parts;
  readonly #move: Database.Statement<[number, number, number, number, number]>;
  readonly #toEnd: Database.Statement<[number]>;
  readonly #delete: Database.Statement<[number]>;

  constructor(db: Database.Database, parts: Parts) {
    this.#parts = parts;
    this.#move = db.prepare(`
      UPDATE sessions SET start_seq = ? WHERE key = ? AND start_seq = ? AND next_seq >= ? AND start_seq <= ?`);
    this.#toEnd = db.prepare("UPDATE sessions SET start_seq = next_seq WHERE key = ?");
    this.#delete = db.prepare("DELETE FROM sessions WHERE key = ?");
  }

  /** False as well for a place before the present start or after the end of the history. */
  moveStart({ id, expected, to, at }: MoveStart): boolean {
    const { lanes } = this.#parts;
    const lane = lanes.find(id);
    if (lane === null || this.#move.run(to, lane.key, expected, to, to).changes === 0) return false;
    lanes.save(lane, at);
    return true;
  }

  reset({ id, at }: ResetSession): "reset" | "not_found" | "session_busy" {
    const { lanes, journal } = this.#parts;
    const lane = lanes.find(id);
    if (lane === null) return "not_found";
    if (lane.active === 1 || lane.queued === 1) return "session_busy";
    this.#toEnd.run(lane.key);
    lane.openCalls = null; // the model no longer sees the calls, so an answer to them would have no partner
    journal.append(lane, null, at, { type: "session.reset" });
    lanes.save(lane, at);
    return "reset";
  }

  delete(id: SessionId): "deleted" | "not_found" | "session_busy" {
    const lane = this.#parts.lanes.find(id);
    if (lane === null) return "not_found";
    if (lane.active === 1 || lane.queued === 1) return "session_busy";
    this.#delete.run(lane.key); // foreign keys cascade
    return "deleted";
  }
}
