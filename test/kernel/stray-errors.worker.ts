/**
 * Raises stray errors of every kind in the name of two owners and in nobody's, in a thread of its own because a
 * test runner listens to the same process events, and posts who got which.
 */
import { EventEmitter } from "node:events";
import { parentPort } from "node:worker_threads";
import { SystemClock } from "../../src/kernel/clock.ts";
import { toError } from "../../src/kernel/errors.ts";
import { installStrayErrorHandler, runAs } from "../../src/kernel/stray-errors.ts";
import { type Child, supervise } from "../../src/kernel/supervisor.ts";

const EXPECTED = 11;
const received: string[] = [];

function receive(owner: string, thrown: unknown): void {
  received.push(`${owner}: ${toError(thrown).message}`);
  if (received.length === EXPECTED) parentPort?.postMessage(received.toSorted(), []);
}

function raise(message: string): never {
  throw new Error(message);
}

const owner = (name: string) => ({ name, crash: (thrown: unknown) => receive(name, thrown) });

installStrayErrorHandler(process, (thrown) => receive("nobody", thrown));

const emitter = new EventEmitter();
emitter.on("ping", () => raise("listener of an emitter"));

runAs(owner("alice"), () => {
  setTimeout(() => raise("timer"), 1);
  setImmediate(() => raise("immediate"));
  queueMicrotask(() => raise("microtask"));
  process.nextTick(() => raise("tick"));
  setTimeout(() => emitter.emit("ping"), 1);
});
runAs(owner("bob"), () => {
  void Promise.reject(new Error("rejection"));
  void (async () => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    raise("async function");
  })();
});
setTimeout(() => raise("timer without owner"), 1);
void Promise.reject(new Error("rejection without owner"));
runAs({ name: "broken", crash: () => raise("cannot cope") }, () => queueMicrotask(() => raise("to broken")));

/** Its abort listener is its own code, although the supervisor sets it off. */
const clumsy: Child = async ({ signal, ready }) => {
  signal.addEventListener("abort", () => raise("abort listener"));
  ready();
  await new Promise((resolve) => setTimeout(resolve, 20));
};
const stop = new AbortController();
void supervise({
  id: "top",
  children: [{ id: "clumsy", run: clumsy }],
  clock: new SystemClock(),
  report: ({ child, error }) => receive(child, new Error(error?.message)),
})({ signal: stop.signal, ready: () => stop.abort(new Error("enough")) });
