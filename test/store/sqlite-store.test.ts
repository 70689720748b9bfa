import { describe } from "vitest";
import { openedStore } from "./fixtures.ts";
import { storeContract } from "./store-contract.ts";

describe("in memory", () => storeContract(() => openedStore("memory")));
describe("in a file", () => storeContract(() => openedStore("file")));
describe("through the writer thread", () => storeContract(() => openedStore("thread")));
