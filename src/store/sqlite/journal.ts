import type Database from "better-sqlite3";
import type { Event, EventBody } from "../../domain/event.ts";
import type { RunId } from "../../domain/ids.ts";
import type { Lane } from "./lanes.ts";

/** Inserts events and remembers those of the open transaction, so that they can be told after its commit. */
export class Journal {
  readonly #insert: Database.Statement<[number, number, number | null, number, string]>;
  #told: Event[] = [];

  constructor(db: Database.Database) {
    this.#insert = db.prepare("INSERT INTO events (session, seq, run, ts, body) VALUES (?, ?, ?, ?, ?)");
  }

  append(
    lane: Lane,
    run: { readonly key: number; readonly id: RunId } | null,
    ts: number,
    body: EventBody,
  ): void {
    lane.lastEvent += 1;
    this.#insert.run(lane.key, lane.lastEvent, run?.key ?? null, ts, JSON.stringify(body));
    this.#told.push({ sessionId: lane.id, seq: lane.lastEvent, runId: run?.id ?? null, ts, body });
  }

  /** How many events the transaction has so far: a mark for `rollbackTo`. */
  get length(): number {
    return this.#told.length;
  }

  rollbackTo(mark: number): void {
    this.#told.length = mark;
  }

  /** The transaction's events in commit order; the journal forgets them. */
  take(): readonly Event[] {
    const told = this.#told;
    this.#told = [];
    return told;
  }
}
