import Database from "better-sqlite3";
import { BeamclawError } from "../../domain/error-catalogue.ts";
import { toError } from "../../kernel/errors.ts";

/** What each family of SQLite result codes means to the person who has to cure it. */
const causes: Readonly<Record<string, string>> = {
  SQLITE_FULL: "the disk is full",
  SQLITE_IOERR: "the disk reports an I/O error",
  SQLITE_READONLY: "the database is read-only",
  SQLITE_CORRUPT: "the database is damaged; restore a backup",
  SQLITE_NOTADB: "the file is not a database; restore a backup",
  SQLITE_BUSY: "another process has locked the database",
  SQLITE_LOCKED: "another process has locked the database",
  SQLITE_CANTOPEN: "the database file cannot be opened",
  SQLITE_PERM: "the database file may not be accessed",
  SQLITE_PROTOCOL: "another process has locked the database",
  SQLITE_NOMEM: "memory is short",
};

/** How better-sqlite3 refuses a statement after its connection was closed; the error has no code of its own. */
const closedConnection = "The database connection is not open";

/**
 * Classifies whatever a database call threw. Trouble with the disk or the file becomes `store_unavailable`;
 * anything else is a defect of ours and becomes `internal`, its cause kept.
 */
export function toStoreError(thrown: unknown): BeamclawError {
  if (thrown instanceof BeamclawError) return thrown;
  if (thrown instanceof Database.SqliteError) {
    const cause = causes[thrown.code.split("_", 2).join("_")];
    if (cause !== undefined) {
      return new BeamclawError("store_unavailable", `${cause} (${thrown.code})`, { cause: thrown });
    }
  }
  const error = toError(thrown);
  if (error.message === closedConnection)
    return new BeamclawError("store_unavailable", "the store is closed");
  return new BeamclawError("internal", `store: ${error.message}`, { cause: error });
}

/** Runs file work of the store; whatever the file system refuses makes the store unavailable. */
export async function storeIo<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    const { message } = toError(thrown);
    throw new BeamclawError("store_unavailable", `attachments: ${message}`, { cause: thrown });
  }
}
