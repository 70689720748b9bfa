import { readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { asId, type SessionId } from "../../src/domain/ids.ts";
import type { Clock } from "../../src/kernel/clock.ts";
import { AttachmentFiles, attachmentIdOf } from "../../src/store/attachment-files.ts";
import { openSqliteStore } from "../../src/store/sqlite-store.ts";
import { temporaryFolder } from "./fixtures.ts";
import { accepted, finishRequest, start } from "./requests.ts";

const bytes = Buffer.from("some bytes");
const id = attachmentIdOf(bytes);

/** A clock that stands still where it is put; the store sets no timer. */
class StandingClock implements Clock {
  time = start;
  now = (): number => this.time;
  monotonic = (): number => this.time;
  setTimer(): never {
    throw new Error("the store sets no timer");
  }
}

describe("files", () => {
  test("are named by their content, private, and leave no draft", async () => {
    const folder = join(await temporaryFolder(), "attachments");
    const files = new AttachmentFiles(folder);
    await Promise.all([files.write(id, bytes), files.write(id, bytes), files.write(id, bytes)]);
    const shelf = join(folder, id.slice(0, 2));
    expect(readdirSync(shelf)).toEqual([id.slice(2)]);
    expect((statSync(join(shelf, id.slice(2))).mode & 0o777).toString(8)).toBe("600");
    expect((statSync(shelf).mode & 0o777).toString(8)).toBe("700");
    expect(Buffer.from((await files.read(id)) ?? [])).toEqual(bytes);
    files.remove(id);
    files.remove(id);
    expect(await files.read(id)).toBeNull();
  });

  test("that cannot be written make the store unavailable, and nothing refers to them", async () => {
    const folder = await temporaryFolder();
    writeFileSync(join(folder, "attachments"), "in the way");
    const store = await openSqliteStore({
      file: ":memory:",
      attachmentsDir: join(folder, "attachments"),
      writer: "inline",
    });
    await expect(store.attachments.put(bytes, "text/plain")).rejects.toMatchObject({
      code: "store_unavailable",
    });
    expect(await store.attachments.get(id)).toBeNull();
    await store.close();
  });
});

describe("what nothing refers to", () => {
  test("is collected once it is old; what a session uses stays as long as the session", async () => {
    const { store, clock } = await openedWithClock();
    const loose = await store.attachments.put(bytes, "text/plain");
    const used = await store.attachments.put(Buffer.from("used"), "image/png");
    const sessionId = asId<SessionId>("s");
    const url = `attachment:${used}`;
    const run = await accepted(store, {
      sessionId,
      messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }],
    });
    await store.runs.finish(finishRequest(run));
    expect(await store.runs.purge(start, 10)).toBe(0);
    expect(await store.runs.purge(start + 1, 10)).toBe(1);
    expect(await store.attachments.get(loose)).toBeNull();
    expect(await store.attachments.get(used)).not.toBeNull();
    await store.sessions.delete(sessionId);
    clock.time = start + 50;
    await store.attachments.put(Buffer.from("used"), "image/png"); // handed in again: young again
    expect(await store.runs.purge(start + 50, 10)).toBe(0);
    expect(await store.runs.purge(start + 51, 10)).toBe(1);
    expect(await store.attachments.get(used)).toBeNull();
  });

  test("can be put in again while it is being collected", async () => {
    const { store } = await openedWithClock();
    await store.attachments.put(bytes, "text/plain");
    const [, again] = await Promise.all([
      store.runs.purge(start + 1, 10),
      store.attachments.put(bytes, "text/plain"),
    ]);
    expect(Buffer.from((await store.attachments.get(again))?.bytes ?? [])).toEqual(bytes);
  });
});

async function openedWithClock() {
  const folder = await temporaryFolder();
  const clock = new StandingClock();
  const store = await openSqliteStore({
    file: join(folder, "beamclaw.db"),
    attachmentsDir: join(folder, "attachments"),
    writer: "inline",
    clock,
  });
  onTestFinished(() => store.close());
  return { store, clock };
}
