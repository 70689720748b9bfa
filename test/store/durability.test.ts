import assert from "node:assert/strict";
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { describe, expect, onTestFinished, test } from "vitest";
import { asId, type RunId } from "../../src/domain/ids.ts";
import { verifies } from "../support/verifies.ts";
import { openStore, temporaryFolder } from "./fixtures.ts";
import {
  accepted,
  call,
  eventTypesOf,
  finishRequest,
  historyOf,
  inputOf,
  question,
  session,
  start,
  stepOf,
  user,
} from "./requests.ts";

const program = fileURLToPath(new URL("child-writer.ts", import.meta.url));

/** How many sessions the committing process talks in at once. */
const lanes = 4;

/** Starts the committing process; `blocks` of 512 bytes bound the size of any file that it writes. */
function startWriter(folder: string, blocks = "unlimited"): ChildProcessWithoutNullStreams {
  const script = 'ulimit -S -f "$1"; shift; exec "$@"';
  const command = [process.execPath, program, join(folder, "beamclaw.db"), join(folder, "attachments")];
  const child = spawn("/bin/sh", ["-c", script, "sh", blocks, ...command]);
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

async function* linesOf(child: ChildProcessWithoutNullStreams): AsyncGenerator<string> {
  for await (const line of createInterface({ input: child.stdout })) yield line;
}

test("everything is there after closing and opening again", async () => {
  const folder = await temporaryFolder();
  const before = await openStore("file", folder);
  const run = await accepted(before);
  await before.steps.record(stepOf(run, [call("a")]));
  const asked = question(run);
  await before.approvals.ask(asked);
  const queued = await accepted(before, { messages: [user("later")] });
  const attachment = await before.attachments.put(Buffer.from("bytes"), "text/plain");
  const seen = async (store: typeof before) => ({
    runs: [await store.runs.get(run.id), await store.runs.get(queued.id)],
    steps: await store.steps.list(run.id),
    approval: await store.approvals.get(asked.id),
    history: await historyOf(store),
    events: await eventTypesOf(store),
    open: await store.runs.openSessions(),
    attachment: await store.attachments.get(attachment),
  });
  const told = await seen(before);
  await before.close();

  const after = await openStore("file", folder);
  expect(await seen(after)).toEqual(told);
  expect(told.open).toEqual([{ sessionId: session, states: ["waiting", "queued"] }]);
  // D5: the question can still be answered, and the run goes on under a new attempt.
  const answer = {
    id: asked.id,
    outcome: "approve",
    by: "alice",
    deniedResult: "",
    idempotency: null,
  } as const;
  expect(await after.approvals.decide({ ...answer, at: start })).toMatchObject({ kind: "decided" });
  expect(await after.runs.resume(run.id, start)).toMatchObject({ attempt: 2 });
  await after.runs.finish(finishRequest({ id: run.id, attempt: 2 }));
  const next = await after.runs.startNext(session, { queuedAfter: 0, at: start });
  expect(next).toMatchObject({ id: queued.id, input: inputOf([user("later")]) });
  await after.close();
});

describe("a process that dies or runs out of disk", () => {
  verifies("W18", "what was acknowledged survives a kill at any instant", async () => {
    const folder = await temporaryFolder();
    const child = startWriter(folder);
    const acknowledged: string[] = [];
    for await (const line of linesOf(child)) {
      acknowledged.push(line);
      if (acknowledged.length === 300) child.kill("SIGKILL");
    }
    assert.ok(acknowledged.length >= 300);
    await assertKept(folder, acknowledged);
  });

  test.skipIf(!existsSync("/usr/bin/prlimit"))(
    "a disk that takes no more is store_unavailable, and the store goes on when it does (D8)",
    async () => {
      const folder = await temporaryFolder();
      const child = startWriter(folder, "2048");
      const acknowledged: string[] = [];
      const errors: string[] = [];
      let goal = Infinity;
      for await (const line of linesOf(child)) {
        (line.startsWith("error") ? errors : acknowledged).push(line);
        if (acknowledged.length >= goal) child.kill("SIGKILL");
        if (errors.length < lanes || goal < Infinity) continue;
        goal = acknowledged.length + 40;
        await once(spawn("prlimit", ["--pid", String(child.pid), "--fsize=unlimited"]), "exit");
        child.stdin.write("go on\n");
      }
      expect(errors).toEqual(Array.from({ length: lanes }, () => "error store_unavailable"));
      expect(acknowledged.length).toBeGreaterThanOrEqual(goal);
      await assertKept(folder, acknowledged);
    },
  );
});

/** Every acknowledgement is true, nothing else than one commit on its way is there, and the file is sound. */
async function assertKept(folder: string, acknowledged: readonly string[]): Promise<void> {
  const store = await openStore("file", folder);
  for (const line of acknowledged) {
    const [what, id = ""] = line.split(" ");
    const run = await store.runs.get(asId<RunId>(id));
    assert.ok(run?.state === "completed" || (what === "accepted" && run?.state === "running"), line);
  }
  const open = await store.runs.openSessions();
  assert.ok(open.every(({ states }) => states.length === 1));
  await store.close();
  const db = new Database(join(folder, "beamclaw.db"));
  assert.equal(db.pragma("integrity_check", { simple: true }), "ok");
  db.close();
}

test("a file that is no database of ours is refused and left as it was", async () => {
  const folder = await temporaryFolder();
  const file = join(folder, "beamclaw.db");
  writeFileSync(file, "notes of somebody else\n", { mode: 0o644 });
  await expect(openStore("file", folder)).rejects.toMatchObject({ code: "store_unavailable" });
  expect(readFileSync(file, "utf8")).toBe("notes of somebody else\n");
  expect(statSync(file).mode & 0o777).toBe(0o644);
});
