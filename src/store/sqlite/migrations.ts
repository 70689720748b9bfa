import type Database from "better-sqlite3";
import { BeamclawError } from "../../domain/error-catalogue.ts";
import { initialSchema } from "./schema.ts";

/** Marks the file as ours ("BCLW"), so that `file` and we ourselves can tell it from any other SQLite file. */
export const applicationId = 0x42434c57;

/** Migration n (counted from 1) leads to schema version n. Released entries are never changed, only added to. */
export const migrations: readonly string[] = [initialSchema];

/**
 * Brings the schema up to date in one transaction: after a crash in the middle the old schema is intact.
 * Refuses a schema that is newer than this program, and a file that is not ours.
 */
export function migrate(db: Database.Database, steps: readonly string[] = migrations): void {
  // IMMEDIATE: what is read here must still hold when it is acted upon.
  db.exec("BEGIN IMMEDIATE");
  try {
    const version = checkedVersion(db, steps.length);
    for (const sql of steps.slice(version)) db.exec(sql);
    if (version < steps.length) {
      db.pragma(`application_id = ${applicationId}`);
      db.pragma(`user_version = ${steps.length}`);
    }
    db.exec("COMMIT");
  } catch (error) {
    if (db.inTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

function checkedVersion(db: Database.Database, newest: number): number {
  const version = Number(db.pragma("user_version", { simple: true }));
  const owner = Number(db.pragma("application_id", { simple: true }));
  const tables = Number(db.prepare("SELECT count(*) FROM sqlite_schema").pluck().get());
  if (owner !== applicationId && (owner !== 0 || tables > 0)) {
    throw new BeamclawError("store_unavailable", `${db.name} is a database of another program`);
  }
  if (version > newest) {
    throw new BeamclawError(
      "store_unavailable",
      `${db.name} has schema ${version}, this program knows up to ${newest}; use the newer beamclaw`,
    );
  }
  return version;
}
