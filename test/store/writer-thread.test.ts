import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Event } from "../../src/domain/event.ts";
import { WriterThread } from "../../src/store/writer-thread.ts";
import { openStore, temporaryFolder } from "./fixtures.ts";
import { accepted, acceptRequest, finishRequest, historyOf, start } from "./requests.ts";

/** A writer thread whose program is `body`; `port` and `answer(outcomes)` are given to it. */
async function scripted(body: string) {
  const program = `
    import { parentPort as port } from "node:worker_threads";
    const wal = { pages: 0, outstanding: 0 };
    const answer = (outcomes) => port.postMessage({ kind: "answered", outcomes, events: [], wal });
    port.postMessage({ kind: "ready" });
    ${body}`;
  const url = new URL(`data:text/javascript,${encodeURIComponent(program)}`);
  const events: Event[] = [];
  const errors: Error[] = [];
  const news = {
    onEvents: (told: readonly Event[]) => void events.push(...told),
    onError: (error: Error) => void errors.push(error),
  };
  const writer = await WriterThread.start({ file: "none" }, url, news);
  return { writer, errors };
}

/** Tells each command how many were in its batch; closes when asked. */
const counting = `port.on("message", ({ kind, commands }) => {
  if (kind === "batch") answer(commands.map(() => ({ kind: "done", value: commands.length })));
  if (kind === "close") port.close();
});`;

describe("batches", () => {
  test("commands of one burst share a commit, and so do those that come while it runs", async () => {
    const { writer } = await scripted(counting);
    const burst = [writer.execute("probe", 1), writer.execute("probe", 2), writer.execute("probe", 3)];
    await Promise.resolve();
    const meanwhile = [writer.execute("probe", 4), writer.execute("probe", 5)];
    expect(await Promise.all([...burst, ...meanwhile])).toEqual([3, 3, 3, 2, 2]);
    expect(await writer.execute("probe", 6)).toBe(1);
    await writer.close();
  });

  test("a batch is bounded, and so is what may wait", async () => {
    const { writer } = await scripted(counting);
    const sizes = await Promise.all(Array.from({ length: 1_100 }, () => writer.execute("probe", 1)));
    expect(Math.max(...sizes.map(Number))).toBe(500);
    const many = Array.from({ length: 10_500 }, () => writer.execute("probe", 1));
    const outcomes = await Promise.allSettled(many);
    const refused = outcomes.filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(500);
    expect(refused[0]).toMatchObject({ reason: { code: "overloaded", retryAfterSeconds: 1 } });
    await writer.close();
  });

  test("close waits for what was asked before, and takes nothing new", async () => {
    const { writer, errors } = await scripted(counting);
    const asked = [writer.execute("probe", 1), writer.execute("probe", 2)];
    const closed = writer.close();
    await expect(writer.execute("probe", 3)).rejects.toMatchObject({ code: "store_unavailable" });
    expect(await Promise.all(asked)).toEqual([2, 2]);
    await closed;
    await writer.close();
    expect(errors).toEqual([]);
  });
});

describe("a thread that dies", () => {
  test("fails what was in flight, what waited and what comes later, and is reported once", async () => {
    const { writer, errors } = await scripted(`port.on("message", () => { throw new Error("boom"); });`);
    const inFlight = writer.execute("probe", 1);
    await Promise.resolve();
    const outcomes = await Promise.allSettled([inFlight, writer.execute("probe", 2)]);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { code: "store_unavailable" } });
    await expect(writer.execute("probe", 3)).rejects.toMatchObject({ code: "store_unavailable" });
    await expect(writer.backup("copy")).rejects.toMatchObject({ code: "store_unavailable" });
    await writer.close();
    expect(errors.map(({ message }) => message)).toEqual(["boom"]);
  });

  test("ends quietly is a death as well", async () => {
    const { writer, errors } = await scripted(`port.on("message", () => process.exit(0));`);
    await expect(writer.execute("probe", 1)).rejects.toMatchObject({ code: "store_unavailable" });
    await writer.close();
    expect(errors).toHaveLength(1);
  });

  test("before it is ready is an error of the start", async () => {
    const news = { onEvents: () => undefined, onError: () => undefined };
    const missing = new URL("file:///nonexistent/worker.ts");
    await expect(WriterThread.start({ file: "none" }, missing, news)).rejects.toMatchObject({
      code: "store_unavailable",
    });
    const folder = await temporaryFolder(); // a folder cannot be a database
    await expect(
      WriterThread.start(
        { file: folder },
        new URL("../../src/store/writer-worker.ts", import.meta.url),
        news,
      ),
    ).rejects.toMatchObject({ code: "store_unavailable" });
  });
});

test("the log is checkpointed in idle gaps, so it stays small", async () => {
  const folder = await temporaryFolder();
  const store = await openStore("thread", folder);
  onTestFinished(() => store.close());
  const db = new Database(join(folder, "beamclaw.db"), { readonly: true });
  const outstanding = () => {
    const [size] = db.prepare<[], { log: number; checkpointed: number }>("PRAGMA wal_checkpoint(NOOP)").all();
    return (size?.log ?? 0) - (size?.checkpointed ?? 0);
  };
  const text = "x".repeat(200_000);
  let most = 0;
  for (let n = 0; n < 60; n += 1) {
    const run = await accepted(store);
    await store.runs.finish(finishRequest(run, { output: text }));
    most = Math.max(most, outstanding());
  }
  await store.probe(start); // an answer after the last checkpoint was asked for
  db.close();
  expect(most).toBeGreaterThan(1_000); // it was left alone while it was small …
  expect(most).toBeLessThan(2_300); // … and never grew far beyond 8 MiB, though 12 MB were written
});

test("a backup is a whole store of its own, taken while writing goes on", async () => {
  const folder = await temporaryFolder();
  const store = await openStore("thread", folder);
  const run = await accepted(store);
  const copy = join(folder, "copy.db");
  const [, more] = await Promise.all([
    store.backup(copy),
    store.runs.accept(acceptRequest({ at: start + 1 })),
  ]);
  expect(more.kind).toBe("queued");
  await expect(store.backup(copy)).rejects.toMatchObject({ code: "invalid_request" });
  await store.close();
  expect(existsSync(join(folder, "beamclaw.db-wal"))).toBe(false); // closing has emptied the log
  const restored = new Database(copy);
  expect(restored.pragma("integrity_check", { simple: true })).toBe("ok");
  expect(restored.prepare("SELECT id FROM runs WHERE id = ?").pluck().get(run.id)).toBe(run.id);
  restored.close();
  expect(await historyOf(await reopened(folder))).toHaveLength(1);
});

async function reopened(folder: string) {
  const store = await openStore("file", folder);
  onTestFinished(() => store.close());
  return store;
}

test("a store that is closed leaves one file behind", async () => {
  const folder = await temporaryFolder();
  const store = await openStore("thread", folder);
  await store.probe(1);
  await store.close();
  expect(readdirSync(folder).filter((name) => name.startsWith("beamclaw.db"))).toEqual(["beamclaw.db"]);
});
