import { join } from "node:path";
import Database from "better-sqlite3";
import { beforeAll, describe } from "vitest";
import type { Store } from "../../src/store/ports.ts";
import { type Backend, makeFolder, openedStore, openStore, removeFolder } from "./fixtures.ts";
import { start } from "./requests.ts";
import { storeContract } from "./store-contract.ts";

describe("in memory", () => {
  storeContract(() => openedStore("memory"));
});

describe("in a file", () => {
  sharedContract("file");
});

describe("through the writer thread", () => {
  sharedContract("thread");
});

/** Making a file or starting a thread for each test would take most of the time: the tests share one and empty it. */
function sharedContract(backend: Backend): void {
  let folder = "";
  let store: Store;
  beforeAll(async () => {
    folder = await makeFolder();
    store = await openStore(backend, folder);
    return async () => {
      await store.close();
      await removeFolder(folder);
    };
  });
  storeContract(async () => {
    empty(join(folder, "beamclaw.db"));
    // One of the tests closes its store.
    if (!(await works(store))) store = await openStore(backend, folder);
    return store;
  });
}

function empty(file: string): void {
  const db = new Database(file);
  db.exec(
    "BEGIN; DELETE FROM sessions; DELETE FROM idempotency; DELETE FROM tokens; DELETE FROM attachments; COMMIT",
  );
  db.close();
}

const works = (store: Store): Promise<boolean> =>
  store.probe(start).then(
    () => true,
    () => false,
  );
