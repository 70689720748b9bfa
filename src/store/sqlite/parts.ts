import type Database from "better-sqlite3";
import { History } from "./history.ts";
import { IdempotencyKeys } from "./idempotency.ts";
import type { Journal } from "./journal.ts";
import { Lanes } from "./lanes.ts";
import { OpenRuns } from "./open-runs.ts";
import { StepLedger } from "./step-ledger.ts";

/** What the commands are made of: each part owns the statements of one concept, over one connection. */
export interface Parts {
  readonly runs: OpenRuns;
  readonly lanes: Lanes;
  readonly keys: IdempotencyKeys;
  readonly history: History;
  readonly journal: Journal;
  readonly ledger: StepLedger;
}

export function partsOver(db: Database.Database, journal: Journal): Parts {
  const history = new History(db, journal);
  return {
    runs: new OpenRuns(db),
    lanes: new Lanes(db),
    keys: new IdempotencyKeys(db),
    history,
    journal,
    ledger: new StepLedger(db, history, journal),
  };
}
