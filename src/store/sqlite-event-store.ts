import type Database from "better-sqlite3";
import type { Event, EventBody } from "../domain/event.ts";
import type { RunId, SessionId } from "../domain/ids.ts";
import type { EventFeed } from "./event-feed.ts";
import type { EventStore } from "./ports.ts";
import { guarded, parameter } from "./sqlite/statement.ts";

interface EventRow extends Omit<Event, "body"> {
  readonly body: string;
}

interface RunSpan {
  readonly key: number;
  readonly first: number;
  /** Null while the run is open. */
  readonly last: number | null;
}

const maxLimit = 1_000;

/** The journal: stored events by session, and news of those that are being committed. */
export class SqliteEventStore implements EventStore {
  readonly #ofSession: Database.Statement<[string, number, number], EventRow>;
  readonly #ofRun: Database.Statement<[string, number, number, number, number], EventRow>;
  readonly #span: Database.Statement<[string], RunSpan>;
  readonly #feed: EventFeed;

  constructor(db: Database.Database, feed: EventFeed) {
    this.#feed = feed;
    const select = `
      SELECT s.id AS sessionId, e.seq, r.id AS runId, e.ts, e.body
      FROM sessions s JOIN events e ON e.session = s.key LEFT JOIN runs r ON r.key = e.run
      WHERE s.id = ${parameter} AND e.seq > ${parameter}`;
    this.#ofSession = db.prepare(`${select} ORDER BY e.seq LIMIT ?`);
    this.#ofRun = db.prepare(
      `${select} AND e.seq <= ${parameter} AND e.run = ${parameter} ORDER BY e.seq LIMIT ?`,
    );
    this.#span = db.prepare("SELECT key, first_event AS first, last_event AS last FROM runs WHERE id = ?");
  }

  async after(
    sessionId: SessionId,
    after: number,
    options: { readonly runId?: RunId; readonly limit: number },
  ): Promise<readonly Event[]> {
    const limit = Math.min(Math.max(1, options.limit), maxLimit);
    const { runId } = options;
    const rows = guarded(() =>
      runId === undefined
        ? this.#ofSession.all(sessionId, after, limit)
        : this.#eventsOfRun(sessionId, after, runId, limit),
    );
    return rows.map(decodeEvent);
  }

  subscribe(listener: (events: readonly Event[]) => void): () => void {
    return this.#feed.subscribe(listener);
  }

  /** Looks only where the run's events can be, however long the session's journal is. */
  #eventsOfRun(sessionId: SessionId, after: number, runId: RunId, limit: number): EventRow[] {
    const span = this.#span.get(runId);
    if (span === undefined) return [];
    const from = Math.max(after, span.first - 1);
    return this.#ofRun.all(sessionId, from, span.last ?? Number.MAX_SAFE_INTEGER, span.key, limit);
  }
}

function decodeEvent(row: EventRow): Event {
  const body: EventBody = JSON.parse(row.body);
  return { ...row, body };
}
