import assert from "node:assert/strict";
import { join } from "node:path";
import Database from "better-sqlite3";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Event } from "../../src/domain/event.ts";
import type { RunId } from "../../src/domain/ids.ts";
import type { WireMessage } from "../../src/domain/message.ts";
import type { Store } from "../../src/store/ports.ts";
import { verifies } from "../support/verifies.ts";
import { Duet } from "./duet.ts";
import { makeFolder, openStore, removeFolder } from "./fixtures.ts";
import { historyOf } from "./requests.ts";
import { type Operation, operation, sessions } from "./operations.ts";

/** Every call of an answer has one result right behind it; only calls at the very end may still be open. */
function assertPaired(history: readonly WireMessage[]): void {
  let owed = new Set<string>();
  for (const message of history) {
    if (message.role === "tool") {
      if (!owed.delete(message.tool_call_id)) throw new Error(`${message.tool_call_id} answers nothing`);
      continue;
    }
    if (owed.size > 0) throw new Error(`${[...owed].join()} unanswered before ${message.role}`);
    owed = new Set(message.role === "assistant" ? message.tool_calls?.map(({ id }) => id) : []);
  }
}

/** Runs of a session never overlap, start in order of acceptance, and end once. */
function assertLane(events: readonly Event[], accepted: readonly RunId[]): void {
  let active: RunId | null = null;
  const started: RunId[] = [];
  const ended = new Set<RunId>();
  for (const { runId, body } of events) {
    if (runId === null) continue;
    if (body.type === "run.started") {
      if (active !== null) throw new Error(`${runId} started while ${active} was active`);
      active = runId;
      started.push(runId);
    } else if (/^run\.(completed|failed|cancelled|expired)$/.test(body.type)) {
      if (ended.has(runId)) throw new Error(`${runId} ended twice`);
      ended.add(runId);
      if (active === runId) active = null;
    }
  }
  assert.deepEqual(
    started,
    accepted.filter((id) => started.includes(id)),
  );
}

async function check(store: Store, duet: Duet, heard: readonly Event[]): Promise<void> {
  for (const sessionId of sessions) {
    const events = await store.events.after(sessionId, 0, { limit: 1_000 });
    const seqs = events.map((event) => event.seq);
    assert.deepEqual(
      seqs,
      seqs.map((_, index) => index + 1),
    );
    const told = heard.filter((event) => event.sessionId === sessionId);
    assert.deepEqual(told.slice(told.length - events.length), events);
    const accepted = duet.model.runs.filter((run) => run.sessionId === sessionId).map((run) => run.id);
    assertLane(events, accepted);
    assertPaired(await historyOf(store, sessionId));
  }
  for (const run of duet.model.runs) {
    const stored = await store.runs.get(run.id);
    assert.equal(stored?.attempt, run.attempt);
    assert.equal(stored.endedAt === null ? stored.state : "ended", run.state);
  }
}

async function play(store: Store, operations: readonly Operation[]): Promise<void> {
  const heard: Event[] = [];
  const stop = store.events.subscribe((events) => heard.push(...events));
  const duet = new Duet(store);
  for (const one of operations) await duet.perform(one);
  await check(store, duet, heard);
  stop();
}

describe("whatever happens in whatever order", () => {
  verifies(["W13", "W18"], "lanes, fences, pairs, events and keys hold", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(operation, { minLength: 1, maxLength: 60, size: "max" }),
        async (operations) => {
          const store = await openStore("memory", "/nonexistent");
          await play(store, operations);
          await store.close();
        },
      ),
      { numRuns: 200 },
    );
  });

  test("and the file it happened in is sound", async () => {
    const folder = await makeFolder();
    const operations = fc.sample(operation, { numRuns: 300, seed: 7 });
    const store = await openStore("file", folder);
    await play(store, operations);
    await store.close();
    const db = new Database(join(folder, "beamclaw.db"), { readonly: true });
    expect(db.pragma("integrity_check", { simple: true })).toBe("ok");
    expect(db.pragma("foreign_key_check")).toEqual([]);
    db.close();
    await removeFolder(folder);
  });
});
