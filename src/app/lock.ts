import { readFileSync, rmSync, writeFileSync } from "node:fs";
import Database from "better-sqlite3";
import type { Home } from "./home.ts";

/**
 * One daemon per home. The lock is SQLite's exclusive lock on an empty database file, which is a lock of
 * the kernel (POSIX `fcntl`): it ends with the process however that dies, so it is never stale; it is taken
 * atomically, so two starters cannot both win; and it belongs to the file, so it also holds between
 * containers that share a volume, where process ids and sockets say nothing.
 *
 * Two rules keep it true: nobody opens `run/lock` by other means within the daemon (closing any descriptor
 * of a file drops the process's `fcntl` locks on it), and nobody deletes it.
 */
export interface Lock extends Disposable {
  /** Lets go; a second call does nothing. */
  release(): void;
}

/** Whom to name to a person; says nothing about whether the lock is held. */
export interface LockOwner {
  readonly pid: number;
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
}

export type LockAttempt =
  | { readonly kind: "acquired"; readonly lock: Lock }
  /** `owner` is null where the holder has not written its name yet. */
  | { readonly kind: "held"; readonly owner: LockOwner | null };

/** Takes the home's lock or says who has it; never waits. The home must be prepared. */
export function acquireLock(home: Home, owner: LockOwner): LockAttempt {
  const file = lockExclusively(home.lockFile);
  if (file === null) return { kind: "held", owner: readOwner(home) };
  writeFileSync(home.ownerFile, `${JSON.stringify(owner)}\n`, { mode: 0o600 });
  const release = (): void => {
    if (!file.open) return;
    rmSync(home.ownerFile, { force: true });
    file.close();
  };
  return { kind: "acquired", lock: { release, [Symbol.dispose]: release } };
}

function lockExclusively(path: string): Database.Database | null {
  const file = new Database(path, { timeout: 0 });
  try {
    file.exec("BEGIN EXCLUSIVE");
    return file;
  } catch (error) {
    file.close();
    if (error instanceof Database.SqliteError && error.code.startsWith("SQLITE_BUSY")) return null;
    throw error;
  }
}

/** What the last daemon of this home wrote about itself; null where it left nothing readable. */
export function readOwner(home: Home): LockOwner | null {
  try {
    const content: unknown = JSON.parse(readFileSync(home.ownerFile, "utf8"));
    return isOwner(content) ? content : null;
  } catch {
    return null; // no daemon has run, or it is just writing the file
  }
}

const isOwner = (value: unknown): value is LockOwner =>
  typeof value === "object" &&
  value !== null &&
  "pid" in value &&
  Number.isSafeInteger(value.pid) &&
  "version" in value &&
  typeof value.version === "string" &&
  "startedAt" in value &&
  typeof value.startedAt === "number";
