import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { inMemory, openForReading, openForWriting } from "../../../src/store/sqlite/connection.ts";
import { applicationId, migrate, migrations } from "../../../src/store/sqlite/migrations.ts";
import { guarded } from "../../../src/store/sqlite/statement.ts";
import { temporaryFolder } from "../fixtures.ts";

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

async function newFile(): Promise<string> {
  return join(await temporaryFolder(), "home", "beamclaw.db");
}

describe("opening the database", () => {
  test("commits are synced: WAL with synchronous = FULL, seen after the schema is open", async () => {
    const db = openForWriting(await newFile());
    expect(db.pragma("journal_mode", { simple: true })).toBe("wal");
    expect(db.prepare("SELECT count(*) FROM runs").pluck().get()).toBe(0);
    expect(db.pragma("synchronous", { simple: true })).toBe(2);
    expect(db.pragma("foreign_keys", { simple: true })).toBe(1);
    expect(db.pragma("secure_delete", { simple: true })).toBe(1);
    db.close();
  });

  test("folder and files are for their owner only", async () => {
    const file = await newFile();
    const db = openForWriting(file);
    db.exec("INSERT INTO kv VALUES ('a', 'b')");
    expect([join(file, ".."), file, `${file}-wal`, `${file}-shm`].map(mode)).toEqual([
      "700",
      "600",
      "600",
      "600",
    ]);
    db.close();
  });

  test("a reader cannot write", async () => {
    const file = await newFile();
    const db = openForWriting(file);
    const reader = openForReading(file);
    expect(() => reader.exec("INSERT INTO kv VALUES ('a', 'b')")).toThrow(/readonly/);
    reader.close();
    db.close();
  });

  test("the pragma that reports the log's size does no checkpoint", async () => {
    const db = openForWriting(await newFile());
    db.pragma("wal_autocheckpoint = 0");
    db.exec("INSERT INTO kv VALUES ('a', 'b')");
    const size = db.prepare<[], { log: number; checkpointed: number }>("PRAGMA wal_checkpoint(NOOP)");
    const first = size.get();
    expect(first?.log).toBeGreaterThan(0);
    expect(first?.checkpointed).toBe(0);
    expect(size.get()).toEqual(first);
    db.close();
  });
});

describe("a file that cannot be opened is store_unavailable, and says why", () => {
  const cases: Record<string, [prepare: (file: string) => void, message: RegExp]> = {
    "not a database": [(file) => writeFileSync(file, "hello ".repeat(1_000)), /not a database/],
    "a folder": [(file) => mkdirSync(file), /EISDIR|cannot be opened|not a database/],
    "another program's database": [
      (file) => {
        const db = new Database(file);
        db.exec("CREATE TABLE notes (text TEXT)");
        db.close();
      },
      /another program/,
    ],
    "a newer schema": [
      (file) => {
        const db = openForWriting(file);
        db.pragma(`user_version = ${migrations.length + 1}`);
        db.close();
      },
      /use the newer beamclaw/,
    ],
    "locked by another process": [
      (file) => {
        const holder = openForWriting(file);
        holder.pragma("locking_mode = EXCLUSIVE");
        holder.exec("BEGIN IMMEDIATE");
      },
      /locked/,
    ],
  };
  for (const [name, [prepare, message]] of Object.entries(cases)) {
    test(`${name} is refused`, async () => {
      const file = join(await temporaryFolder(), "beamclaw.db");
      prepare(file);
      expect(() => guarded(() => openForWriting(file, { busyMs: 1 }))).toThrow(
        expect.objectContaining({ code: "store_unavailable", message: expect.stringMatching(message) }),
      );
    });
  }
});

describe("migrations", () => {
  test("bring a database to the newest schema once, and mark it as ours", () => {
    const db = openForWriting(inMemory);
    expect(db.pragma("user_version", { simple: true })).toBe(migrations.length);
    expect(db.pragma("application_id", { simple: true })).toBe(applicationId);
    expect(() => migrate(db)).not.toThrow();
    db.close();
  });

  test("go forward from where the database is", () => {
    const db = new Database(inMemory);
    migrate(db, ["CREATE TABLE a (x)"]);
    migrate(db, ["CREATE TABLE a (x)", "ALTER TABLE a ADD COLUMN y"]);
    expect(db.pragma("table_info(a)")).toHaveLength(2);
    expect(db.pragma("user_version", { simple: true })).toBe(2);
    db.close();
  });

  test("that fail leave the old schema whole", () => {
    const db = new Database(inMemory);
    migrate(db, ["CREATE TABLE a (x)"]);
    expect(() => migrate(db, ["", "CREATE TABLE b (x)", "nonsense"])).toThrow(/nonsense/);
    expect(db.prepare("SELECT name FROM sqlite_schema").pluck().all()).toEqual(["a"]);
    expect(db.pragma("user_version", { simple: true })).toBe(1);
    db.close();
  });
});

test("a restart looks at open work only: it reads no index that grows with the history", () => {
  const db = openForWriting(inMemory);
  const plan = (sql: string) =>
    db
      .prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map(({ detail }) => detail);
  expect(plan("SELECT key FROM runs WHERE state = 'queued'")).toEqual([
    "SCAN runs USING COVERING INDEX runs_queued",
  ]);
  expect(plan("SELECT key FROM runs WHERE state IN ('running', 'waiting', 'retrying')")).toEqual([
    "SCAN runs USING INDEX runs_active",
  ]);
  expect(plan("SELECT key FROM approvals WHERE state = 'pending' ORDER BY expires_at")).toEqual([
    "SCAN approvals USING COVERING INDEX approvals_due",
  ]);
  db.close();
});
