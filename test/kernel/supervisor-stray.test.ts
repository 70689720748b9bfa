import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { ManualClock } from "../../src/kernel/clock.ts";
import { installStrayErrorHandler } from "../../src/kernel/stray-errors.ts";
import { type ChildSpec, type ExitReport, supervise } from "../../src/kernel/supervisor.ts";
import { launch, Puppet, type PuppetOptions } from "./puppet.ts";

/** The real handler on a stand-in for `process`; `raise` is what the runtime does with a stray error. */
function stage() {
  const clock = new ManualClock();
  const journal: string[] = [];
  const reports: ExitReport[] = [];
  const unowned: unknown[] = [];
  const runtime = new EventEmitter();
  installStrayErrorHandler(runtime, (thrown) => unowned.push(thrown));
  return {
    clock,
    journal,
    reports,
    unowned,
    raise: (message: string) => runtime.emit("uncaughtException", new Error(message)),
    puppet: (id: string, options?: PuppetOptions) => new Puppet(id, clock, journal, options),
    supervise: (...children: readonly ChildSpec[]) =>
      launch(supervise({ id: "top", children, clock, report: (r) => reports.push(r) })),
  };
}

test("a stray error crashes the child in whose context it was raised, and nobody else", async () => {
  const s = stage();
  const [a, b] = [s.puppet("a"), s.puppet("b")];
  s.supervise(a, b);
  await s.clock.advance(0);
  a.stray(() => s.raise("from a timer"));
  await s.clock.advance(0);
  expect(s.journal).toEqual(["start a", "start b", "stop a", "end a", "start a"]);
  expect(s.unowned).toEqual([]);
  expect(s.reports).toMatchObject([
    { child: "a", reason: "crashed", error: { message: "from a timer" }, willRestart: true },
  ]);
});

test("a child that ignores its signal after a stray error is abandoned, then replaced", async () => {
  const s = stage();
  const a = s.puppet("a", { stopMs: Infinity });
  s.supervise({ id: "a", run: a.run, restart: "transient", shutdownMs: 100 });
  await s.clock.advance(0);
  a.stray(() => s.raise("stray"));
  await s.clock.advance(99);
  expect(a.lives).toBe(1);
  await s.clock.advance(1);
  expect(a.lives).toBe(2);
  expect(s.reports).toMatchObject([{ reason: "abandoned", error: { message: "stray" }, willRestart: true }]);
});

test("what a life leaves behind is reported and does not touch the next one", async () => {
  const s = stage();
  const a = s.puppet("a");
  s.supervise(a);
  await s.clock.advance(0);
  a.crash();
  await s.clock.advance(0);
  a.stray(() => s.raise("left behind"), 1);
  await s.clock.advance(0);
  expect([a.lives, a.serving]).toEqual([2, 1]);
  expect(s.unowned).toEqual([]);
  expect(s.reports.at(-1)).toMatchObject({ reason: "late", error: { message: "left behind" } });
});

test("a burst of stray errors is one crash", async () => {
  const s = stage();
  const a = s.puppet("a");
  s.supervise(a);
  await s.clock.advance(0);
  for (const message of ["first", "second", "third"]) a.stray(() => s.raise(message));
  await s.clock.advance(0);
  expect(a.lives).toBe(2);
  expect(s.reports.map((report) => `${report.reason} ${report.error?.message}`)).toEqual([
    "late second",
    "late third",
    "crashed first",
  ]);
});

test("a stray error of a nested child belongs to the innermost supervisor", async () => {
  const s = stage();
  const [a, b] = [s.puppet("a"), s.puppet("b")];
  const inner = supervise({
    id: "inner",
    children: [a, b],
    clock: s.clock,
    report: (r) => s.reports.push(r),
  });
  s.supervise({ id: "inner", run: inner });
  await s.clock.advance(0);
  b.stray(() => s.raise("deep"));
  await s.clock.advance(0);
  expect([a.lives, b.lives]).toEqual([1, 2]);
  expect(s.reports).toMatchObject([{ supervisor: "inner", child: "b" }]);
});
