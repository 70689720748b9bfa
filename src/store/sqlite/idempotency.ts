import type Database from "better-sqlite3";
import type { RunId } from "../../domain/ids.ts";
import type { RunState } from "../../domain/run.ts";
import type { IdempotencyKey } from "../ports.ts";
import { parameter } from "./statement.ts";

/** How long a key leads back to its run, milliseconds. */
export const keyLifetimeMs = 24 * 3_600_000;

export type Seen =
  | { readonly kind: "new" }
  | { readonly kind: "conflict" }
  | { readonly kind: "replay"; readonly runId: RunId };

interface KeyRow {
  readonly bodyHash: string;
  readonly run: RunId;
  readonly state: RunState | null;
  /** Whether any call with effects has started. */
  readonly effects: 0 | 1;
}

/** Requests that were seen: unique per token, route and key, for a day. */
export class IdempotencyKeys {
  readonly #find: Database.Statement<[string, string, string, number], KeyRow>;
  readonly #put: Database.Statement<[string, string, string, string, string, number]>;

  constructor(db: Database.Database) {
    this.#find = db.prepare(`
      SELECT i.body_hash AS bodyHash, i.run, r.state,
        EXISTS (SELECT 1 FROM calls c WHERE c.run = r.key AND c.effect <> 'none'
          AND c.started_at IS NOT NULL) AS effects
      FROM idempotency i LEFT JOIN runs r ON r.id = i.run
      WHERE i.token = ${parameter} AND i.route = ${parameter} AND i.key = ${parameter} AND i.created_at > ${parameter}`);
    this.#put = db.prepare(`
      INSERT OR REPLACE INTO idempotency (token, route, key, body_hash, run, created_at) VALUES (?, ?, ?, ?, ?, ?)`);
  }

  /** A run that came to nothing before it had any effect does not hold its key: the retry may do better. */
  look(key: IdempotencyKey, at: number): Seen {
    const row = this.#find.get(key.token, key.route, key.key, at - keyLifetimeMs);
    if (row === undefined || row.state === null) return { kind: "new" };
    if (row.bodyHash !== key.bodyHash) return { kind: "conflict" };
    const nothing = (row.state === "failed" || row.state === "expired") && row.effects === 0;
    return nothing ? { kind: "new" } : { kind: "replay", runId: row.run };
  }

  /** Replaces a key that is out of date or was released. */
  put(key: IdempotencyKey, runId: RunId, at: number): void {
    this.#put.run(key.token, key.route, key.key, key.bodyHash, runId, at);
  }
}
