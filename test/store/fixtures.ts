import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Store } from "../../src/store/ports.ts";
import { openSqliteStore } from "../../src/store/sqlite-store.ts";

export type Backend = "memory" | "file" | "thread";

export const makeFolder = (): Promise<string> => mkdtemp(join(tmpdir(), "beamclaw-store-"));

export const removeFolder = (folder: string): Promise<void> => rm(folder, { recursive: true, force: true });

/** A folder of the test's own that goes with it. */
export async function temporaryFolder(): Promise<string> {
  const folder = await makeFolder();
  onTestFinished(() => removeFolder(folder));
  return folder;
}

export async function openStore(backend: Backend, folder: string): Promise<Store> {
  return openSqliteStore({
    file: backend === "memory" ? ":memory:" : join(folder, "beamclaw.db"),
    attachmentsDir: join(folder, "attachments"),
    writer: backend === "thread" ? "thread" : "inline",
    onError: (error) => {
      throw error;
    },
  });
}

/** A store that is closed, and its folder removed, when the test has finished. */
export async function openedStore(backend: Backend): Promise<Store> {
  const store = await openStore(backend, await temporaryFolder());
  onTestFinished(() => store.close());
  return store;
}
