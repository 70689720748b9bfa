import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import Database from "better-sqlite3";
import { BeamclawError } from "../../domain/error-catalogue.ts";
import { migrate } from "./migrations.ts";
import { toStoreError } from "./store-error.ts";

/** `file` that SQLite keeps in memory. */
export const inMemory = ":memory:";

/** How long a connection waits for a lock, milliseconds. Only the daemon opens the file, so waits are rare. */
const writerBusyMs = 2_000;
const readerBusyMs = 250;

/** Opens the one connection that writes, with the newest schema and every commit fsynced. */
export function openForWriting(file: string, { busyMs = writerBusyMs } = {}): Database.Database {
  if (file !== inMemory) createPrivateFile(file);
  const db = new Database(file, { timeout: busyMs });
  try {
    configure(db);
    migrate(db);
    assertDurable(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Opens a connection for point reads; the file and its schema must exist. */
export function openForReading(file: string): Database.Database {
  const db = new Database(file, { readonly: true, fileMustExist: true, timeout: readerBusyMs });
  db.pragma("query_only = ON");
  return db;
}

/** The file holds conversations and, while tools run, raw arguments: nobody but its owner may read it. */
function createPrivateFile(file: string): void {
  const folder = dirname(file);
  if (!existsSync(folder)) mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (existsSync(file)) {
    assertDatabase(file); // before the mode is touched: a wrong path in the configuration may name anything
    chmodSync(file, 0o600);
    return;
  }
  closeSync(openSync(file, "a", 0o600)); // SQLite gives -wal and -shm the same mode
}

/** Every SQLite database that has been written to begins with this (SQLite file format §1.3). */
const magic = "SQLite format 3\0";

function assertDatabase(file: string): void {
  const { size } = statSync(file);
  if (!statSync(file).isFile()) throw notOurs(file);
  if (size === 0) return;
  const descriptor = openSync(file, "r");
  try {
    const head = Buffer.alloc(magic.length);
    readSync(descriptor, head, 0, head.length, 0);
    if (head.toString("latin1") !== magic) throw notOurs(file);
  } finally {
    closeSync(descriptor);
  }
}

const notOurs = (file: string): BeamclawError =>
  new BeamclawError("store_unavailable", `store: ${file} is not a database of beamclaw; it is left alone`);

function configure(db: Database.Database): void {
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.pragma("foreign_keys = ON");
  // Settled raw arguments are overwritten on disk, not just unlinked.
  db.pragma("secure_delete = ON");
  // Savepoints journal to memory; a spill to a temporary file would leave raw arguments outside our folder.
  db.pragma("temp_store = MEMORY");
}

/**
 * A build of SQLite may lower `synchronous` by itself when a database turns out to be in WAL mode, and shows it
 * only once a statement has used the database; so this has to run after the schema is open.
 */
function assertDurable(db: Database.Database): void {
  const level = Number(db.pragma("synchronous", { simple: true }));
  if (level < 2) throw new BeamclawError("store_unavailable", "SQLite does not sync its commits to the disk");
}

/**
 * Writes a consistent copy in slices, so that the connection goes on with other work in between. The copy is as
 * private as the original; a copy that fails leaves no file behind.
 */
export async function backupTo(db: Database.Database, file: string): Promise<void> {
  try {
    closeSync(openSync(file, "wx", 0o600));
  } catch (error) {
    throw new BeamclawError("invalid_request", `cannot create ${file}; it must not exist yet`, {
      cause: error,
    });
  }
  try {
    await db.backup(file);
  } catch (error) {
    rmSync(file, { force: true });
    throw toStoreError(error);
  }
}
