import type Database from "better-sqlite3";
import { isEnded } from "../../domain/run.ts";
import type { RunId, SessionId } from "../../domain/ids.ts";
import type { Fenced } from "../ports.ts";
import type { Lane } from "./lanes.ts";
import { parameter } from "./statement.ts";
import { runColumns, type RunRow } from "./run-row.ts";

export interface RunRef {
  readonly key: number;
  readonly id: RunId;
}

/** An open run as commands see it: its row, and the lane that they append to. */
export interface OpenRun extends RunRef {
  readonly row: RunRow;
  readonly lane: Lane;
  readonly ephemeral: boolean;
  /** A step with calls that have no result yet, the client's included. */
  readonly openStep: number | null;
  /** Whether another run of the session waits for its turn. */
  readonly queued: boolean;
}

interface OpenRunRow extends RunRow {
  readonly openStep: number | null;
  readonly laneKey: number;
  readonly nextSeq: number;
  readonly lastEvent: number;
  readonly openCalls: string | null;
  readonly queued: 0 | 1;
}

/** The answer to a zombie. */
export const fenced: Fenced = { kind: "refused", code: "fenced" };

const openRunQuery = `
  SELECT ${runColumns}, r.open_step AS openStep, s.key AS laneKey, s.next_seq AS nextSeq,
    s.last_event AS lastEvent, s.open_calls AS openCalls,
    EXISTS (SELECT 1 FROM runs q WHERE q.session = r.session AND q.state = 'queued' AND q.key <> r.key) AS queued
  FROM runs r JOIN sessions s ON s.key = r.session`;

/** Finds the run that a command is about, and refuses those that have no right to write. */
export class OpenRuns {
  readonly #byId: Database.Statement<[string], OpenRunRow>;
  readonly #queued: Database.Statement<[string], OpenRunRow>;

  constructor(db: Database.Database) {
    this.#byId = db.prepare(`${openRunQuery} WHERE r.id = ${parameter}`);
    this.#queued = db.prepare(
      `${openRunQuery} WHERE s.id = ${parameter} AND r.state = 'queued' ORDER BY r.key`,
    );
  }

  /** Null where there is none or it has ended. */
  find(id: RunId): OpenRun | null {
    const row = this.#byId.get(id);
    return row === undefined || isEnded(row.state) ? null : openRunOf(row);
  }

  /** The fence: null unless the run is active and `attempt` is its newest. */
  active(id: RunId, attempt: number): OpenRun | null {
    const run = this.find(id);
    return run === null || run.row.state === "queued" || run.row.attempt !== attempt ? null : run;
  }

  /** Oldest first, all over one lane. */
  queuedOf(sessionId: SessionId): readonly OpenRun[] {
    const runs = this.#queued.all(sessionId).map(openRunOf);
    const lane = runs[0]?.lane;
    return lane === undefined ? [] : runs.map((run) => ({ ...run, lane }));
  }
}

function openRunOf(row: OpenRunRow): OpenRun {
  const lane: Lane = {
    key: row.laneKey,
    id: row.sessionId,
    nextSeq: row.nextSeq,
    lastEvent: row.lastEvent,
    openCalls: row.openCalls,
  };
  return {
    key: row.key,
    id: row.id,
    row,
    lane,
    ephemeral: row.ephemeral === 1,
    openStep: row.openStep,
    queued: row.queued === 1,
  };
}
