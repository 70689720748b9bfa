import type Database from "better-sqlite3";
import { describe, expect, onTestFinished, test } from "vitest";
import { asId, type RunId } from "../../../src/domain/ids.ts";
import { openForWriting } from "../../../src/store/sqlite/connection.ts";
import { type Command, SqliteCore } from "../../../src/store/sqlite/sqlite-core.ts";
import { alice, agent, session, start } from "../requests.ts";

function opened(): { db: Database.Database; core: SqliteCore } {
  const db = openForWriting(":memory:");
  onTestFinished(() => void db.close());
  return { db, core: new SqliteCore(db) };
}

const accept = (id: string, perSession = 32): Command => ({
  name: "accept",
  input: {
    run: {
      id: asId<RunId>(id),
      sessionId: session,
      principal: alice,
      agent,
      channel: "http",
      ephemeral: false,
    },
    input: "{}",
    messages: [{ id: `m-${id}`, role: "user", wire: "{}", answers: null, attachments: false }],
    attachments: [],
    idempotency: null,
    start: true,
    limits: { perSession, total: 1_000 },
    at: start,
  },
});

const runIds = (db: Database.Database) => db.prepare("SELECT id FROM runs ORDER BY key").pluck().all();

describe("a batch of commands", () => {
  test("one that fails takes nothing of its neighbours with it", () => {
    const { db, core } = opened();
    const { outcomes, events } = core.batch([accept("r1"), accept("r1"), accept("r2")]);
    expect(outcomes).toMatchObject([
      { kind: "done", value: { kind: "started" } },
      { kind: "failed", error: { code: "internal" } },
      { kind: "done", value: { kind: "queued" } },
    ]);
    expect(runIds(db)).toEqual(["r1", "r2"]);
    // Neither rows nor news of the failed command are left, and the numbers have no gap.
    expect(events.map(({ seq, runId }) => [seq, runId])).toEqual([
      [1, "r1"],
      [2, "r1"],
      [3, "r2"],
    ]);
    expect(db.prepare("SELECT count(*) FROM messages").pluck().get()).toBe(1);
  });

  test("a refusal is a value, and leaves nothing behind", () => {
    const { db, core } = opened();
    const { outcomes } = core.batch([accept("r1"), accept("r2", 0), accept("r3")]);
    expect(outcomes[1]).toEqual({ kind: "done", value: { kind: "refused", code: "queue_full" } });
    expect(runIds(db)).toEqual(["r1", "r3"]);
  });

  test("when the commit fails, none of it is kept and all are told; the next batch works", () => {
    const { db, core } = opened();
    // A deferred foreign key is checked by COMMIT itself, after every command has succeeded.
    db.exec(`CREATE TABLE parent (id INTEGER PRIMARY KEY);
      CREATE TABLE child (parent INTEGER REFERENCES parent(id) DEFERRABLE INITIALLY DEFERRED);
      CREATE TRIGGER orphan AFTER INSERT ON kv BEGIN INSERT INTO child VALUES (1); END`);
    const probe: Command = { name: "probe", input: start };
    const broken = core.batch([accept("r1"), probe]);
    expect(broken.outcomes.map(({ kind }) => kind)).toEqual(["failed", "failed"]);
    expect(broken.events).toEqual([]);
    expect(runIds(db)).toEqual([]);
    db.exec("DROP TRIGGER orphan");
    const mended = core.batch([accept("r1"), probe]);
    expect(mended.outcomes.map(({ kind }) => kind)).toEqual(["done", "done"]);
    expect(mended.events.map(({ seq }) => seq)).toEqual([1, 2]);
  });

  test("a full database refuses with store_unavailable and recovers with the disk (D8)", () => {
    const { db, core } = opened();
    const pages = Number(db.pragma("page_count", { simple: true }));
    db.pragma(`max_page_count = ${pages}`);
    const outcomes = Array.from({ length: 300 }, (_, n) => core.batch([accept(`r${n}`, 1_000)]).outcomes[0]);
    const failed = outcomes.filter((outcome) => outcome?.kind === "failed");
    expect(failed.length).toBeGreaterThan(0);
    const error = { code: "store_unavailable", message: "the disk is full (SQLITE_FULL)" };
    for (const outcome of failed) expect(outcome).toMatchObject({ kind: "failed", error });
    expect(runIds(db)).toHaveLength(outcomes.length - failed.length);
    db.pragma("max_page_count = 100000");
    expect(core.batch([accept("after")]).outcomes[0]?.kind).toBe("done");
    expect(db.pragma("integrity_check", { simple: true })).toBe("ok");
  });
});

test("settled raw arguments are gone from the file, not only from the row", () => {
  const { db, core } = opened();
  const run = { runId: "r1", attempt: 1, step: 0 };
  const call = { callId: "c", tool: "t", effect: "none", client: false, result: null, started: true };
  core.batch([
    accept("r1"),
    {
      name: "recordStep",
      input: {
        ...run,
        messageId: "m",
        wire: "{}",
        extra: null,
        at: start,
        calls: [{ ...call, rawArguments: "raw-secret-1234", scrubbedArguments: "[redacted]" }],
        usage: { promptTokens: 0, completionTokens: 0 },
      },
    },
  ]);
  expect(db.serialize().includes("raw-secret-1234")).toBe(true);
  core.batch([
    { name: "settleCall", input: { ...run, index: 0, result: { ok: true, text: "x" }, at: start } },
  ]);
  expect(db.serialize().includes("raw-secret-1234")).toBe(false);
});
