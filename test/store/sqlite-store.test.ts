import { join } from "node:path";
import Database from "better-sqlite3";
import { beforeAll, describe } from "vitest";
import type { Store } from "../../src/store/ports.ts";
import { makeFolder, openedStore, openStore, removeFolder } from "./fixtures.ts";
import { start } from "./requests.ts";
import { storeContract } from "./store-contract.ts";

describe("in memory", () => {
  storeContract(() => openedStore("memory"));
});

describe("in a file", () => {
  storeContract(() => openedStore("file"));
});

/** Starting a thread for each test would take most of the suite's time, so the tests share one and empty it. */
describe("through the writer thread", () => {
  let folder = "";
  let store: Store;
  beforeAll(async () => {
    folder = await makeFolder();
    store = await openStore("thread", folder);
    return async () => {
      await store.close();
      await removeFolder(folder);
    };
  });
  storeContract(async () => {
    empty(join(folder, "beamclaw.db"));
    // One of the tests closes its store.
    if (!(await works(store))) store = await openStore("thread", folder);
    return store;
  });
});

function empty(file: string): void {
  const db = new Database(file);
  db.exec("DELETE FROM sessions; DELETE FROM idempotency; DELETE FROM tokens; DELETE FROM attachments");
  db.close();
}

const works = (store: Store): Promise<boolean> =>
  store.probe(start).then(
    () => true,
    () => false,
  );
