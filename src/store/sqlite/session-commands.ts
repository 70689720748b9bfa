import type Database from "better-sqlite3";
import type { SessionId } from "../../domain/ids.ts";
import type { Parts } from "./parts.ts";

export interface MoveStart {
  readonly id: SessionId;
  readonly expected: number;
  readonly to: number;
  readonly reset: boolean;
  readonly at: number;
}

/** Changes of whole sessions; their messages come and go with runs only. */
export class SessionCommands {
  readonly #parts: Parts;
  readonly #move: Database.Statement<[number, number, number, number, number]>;
  readonly #delete: Database.Statement<[number]>;

  constructor(db: Database.Database, parts: Parts) {
    this.#parts = parts;
    this.#move = db.prepare(`
      UPDATE sessions SET start_seq = ? WHERE key = ? AND start_seq = ? AND next_seq >= ? AND start_seq <= ?`);
    this.#delete = db.prepare("DELETE FROM sessions WHERE key = ?");
  }

  /** False as well for a place before the present start or after the end of the history. */
  moveStart({ id, expected, to, reset, at }: MoveStart): boolean {
    const { lanes, journal } = this.#parts;
    const lane = lanes.find(id);
    if (lane === null || this.#move.run(to, lane.key, expected, to, to).changes === 0) return false;
    if (reset) {
      lane.openCalls = null; // the model no longer sees the calls, so an answer to them would have no partner
      journal.append(lane, null, at, { type: "session.reset" });
    }
    lanes.save(lane, at);
    return true;
  }

  delete(id: SessionId): "deleted" | "not_found" | "session_busy" {
    const lane = this.#parts.lanes.find(id);
    if (lane === null) return "not_found";
    if (lane.active === 1 || lane.queued === 1) return "session_busy";
    this.#delete.run(lane.key); // foreign keys cascade
    return "deleted";
  }
}
