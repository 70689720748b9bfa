import { EventEmitter, once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { installStrayErrorHandler, runAs } from "../../src/kernel/stray-errors.ts";

test("the runtime hands every kind of stray error to the owner of its context", async () => {
  const worker = new Worker(new URL("./stray-errors.worker.ts", import.meta.url), { execArgv: [] });
  const [received] = await once(worker, "message");
  await worker.terminate();
  expect(received).toEqual(
    [
      "alice: immediate",
      "alice: listener of an emitter",
      "alice: microtask",
      "alice: tick",
      "alice: timer",
      "bob: async function",
      "bob: rejection",
      "clumsy: abort listener",
      "nobody: broken could not take a stray error",
      "nobody: rejection without owner",
      "nobody: timer without owner",
    ].toSorted(),
  );
});

test("owners nest, and the innermost answers", () => {
  const source = new EventEmitter();
  using _ = installStrayErrorHandler(source, () => crashed.push("nobody"));
  const crashed: string[] = [];
  const owner = (name: string) => ({ name, crash: () => crashed.push(name) });
  runAs(owner("outer"), () => {
    runAs(owner("inner"), () => source.emit("unhandledRejection", new Error("one")));
    source.emit("uncaughtException", new Error("two"));
  });
  source.emit("uncaughtException", new Error("three"));
  expect(crashed).toEqual(["inner", "outer", "nobody"]);
});

test("disposal gives the process its own behaviour back", () => {
  const source = new EventEmitter();
  installStrayErrorHandler(source, () => {})[Symbol.dispose]();
  expect(source.eventNames()).toEqual([]);
});
