import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { ManualClock } from "../../src/kernel/clock.ts";
import { Cancelled } from "../../src/kernel/scope.ts";
import {
  type Child,
  type ChildSpec,
  type ExitReport,
  RestartLimitError,
  supervise,
  type SupervisorSpec,
} from "../../src/kernel/supervisor.ts";
import { launch, Puppet, type PuppetOptions } from "./puppet.ts";

const untidy: Child = async ({ signal, ready }) => {
  ready();
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  throw new Error("cannot flush");
};

const tidy: Child = async ({ signal, ready }) => {
  ready();
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  signal.throwIfAborted();
};

function stage() {
  const clock = new ManualClock();
  const journal: string[] = [];
  const reports: ExitReport[] = [];
  return {
    clock,
    journal,
    reports,
    puppet: (id: string, options?: PuppetOptions) => new Puppet(id, clock, journal, options),
    supervise: (children: readonly ChildSpec[], options: Partial<SupervisorSpec> = {}) =>
      launch(supervise({ id: "top", children, clock, report: (r) => reports.push(r), ...options })),
    /** What the journal has gained since the last call. */
    news: () => journal.splice(0).join(", "),
  };
}

describe("starting and stopping", () => {
  test("children start left to right, each when the one before is ready, and stop right to left", async () => {
    const { clock, puppet, news, ...s } = stage();
    const [a, b, c] = [puppet("a", { startMs: 100 }), puppet("b"), puppet("c", { stopMs: 50 })];
    const top = s.supervise([a, b, c]);
    await clock.advance(99);
    expect(news()).toBe("start a");
    expect(top.isReady()).toBe(false);
    await clock.advance(1);
    expect(news()).toBe("start b, start c");
    expect(top.isReady()).toBe(true);

    top.stop();
    await clock.advance(49);
    expect(news()).toBe("stop c");
    await clock.advance(1);
    expect(news()).toBe("end c, stop b, end b, stop a, end a");
    expect(top.outcome()).toBe("returned");
    expect(s.reports).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  test("children see why they are stopped", async () => {
    const s = stage();
    let reason: unknown;
    const top = s.supervise([
      {
        id: "a",
        run: async ({ signal, ready }) => {
          ready();
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          reason = signal.reason;
        },
      },
    ]);
    await s.clock.advance(0);
    top.stop(new Cancelled("user"));
    await s.clock.advance(0);
    expect(reason).toMatchObject({ reason: "user" });
  });

  test("a request to stop is served while a child is still starting", async () => {
    const s = stage();
    const top = s.supervise([s.puppet("a"), s.puppet("b", { startMs: Infinity }), s.puppet("c")]);
    await s.clock.advance(10);
    top.stop();
    await s.clock.advance(0);
    expect(s.news()).toBe("start a, start b, stop b, end b, stop a, end a");
    expect(top.outcome()).toBe("returned");
    expect(top.isReady()).toBe(false);
  });

  test("nothing is started when the signal has already aborted", async () => {
    const s = stage();
    const controller = new AbortController();
    controller.abort(new Cancelled("shutdown"));
    const run = supervise({ id: "top", children: [s.puppet("a")], clock: s.clock, report: () => {} });
    await run({ signal: controller.signal, ready: () => {} });
    expect(s.news()).toBe("");
  });

  test("a child that ignores its signal is abandoned at its deadline and reported, and the stop goes on", async () => {
    const s = stage();
    const stubborn = s.puppet("b", { stopMs: Infinity });
    const top = s.supervise([s.puppet("a"), { id: "b", run: stubborn.run, shutdownMs: 200 }]);
    await s.clock.advance(0);
    top.stop();
    await s.clock.advance(199);
    expect(top.outcome()).toBe("running");
    await s.clock.advance(1);
    expect(top.outcome()).toBe("returned");
    expect(s.reports).toEqual([
      { supervisor: "top", child: "b", reason: "abandoned", restarts: 0, willRestart: false },
    ]);

    stubborn.crash("at last");
    await s.clock.advance(0);
    expect(s.reports.at(-1)).toMatchObject({ child: "b", reason: "late", error: { message: "at last" } });
  });

  test("an infinite deadline waits for as long as it takes", async () => {
    const s = stage();
    const slow = s.puppet("slow", { stopMs: 3_600_000 });
    const top = s.supervise([{ id: "slow", run: slow.run, shutdownMs: Infinity }]);
    await s.clock.advance(0);
    top.stop();
    await s.clock.advance(3_600_000);
    expect(top.outcome()).toBe("returned");
    expect(s.reports).toEqual([]);
  });

  test("an error while stopping is reported; the signal's reason is not an error", async () => {
    const s = stage();
    const top = s.supervise([
      { id: "untidy", run: untidy },
      { id: "tidy", run: tidy },
    ]);
    await s.clock.advance(0);
    top.stop();
    await s.clock.advance(0);
    expect(top.outcome()).toBe("returned");
    expect(s.reports).toMatchObject([{ child: "untidy", reason: "crashed", willRestart: false }]);
  });

  test("a supervisor without children is ready and waits", async () => {
    const s = stage();
    const top = s.supervise([]);
    await s.clock.advance(0);
    expect([top.isReady(), top.outcome()]).toEqual([true, "running"]);
    top.stop();
    await s.clock.advance(0);
    expect(top.outcome()).toBe("returned");
  });

  test("two children of one id and limits that make no sense are refused at once", () => {
    const { clock, puppet } = stage();
    const base = { id: "top", clock, report: () => {} };
    expect(() => supervise({ ...base, children: [puppet("a"), puppet("a")] })).toThrow(RangeError);
    expect(() => supervise({ ...base, children: [], intensity: -1 })).toThrow(RangeError);
    expect(() => supervise({ ...base, children: [], intensity: Infinity })).toThrow(RangeError);
    expect(() => supervise({ ...base, children: [], periodMs: 0 })).toThrow(RangeError);
  });
});

describe("restarting", () => {
  test.each([
    ["permanent", "crash", "end a, start a", ["crashed, restart"]],
    ["permanent", "return", "end a, start a", ["exited, restart"]],
    ["transient", "crash", "end a, start a", ["crashed, restart"]],
    ["transient", "return", "end a", []],
    ["temporary", "crash", "end a", ["crashed, gone"]],
    ["temporary", "return", "end a", []],
  ] as const)("a %s child after a %s", async (restart, how, expected, reported) => {
    const s = stage();
    const a = s.puppet("a");
    const top = s.supervise([{ id: "a", run: a.run, restart }]);
    await s.clock.advance(0);
    s.news();
    a[how]();
    await s.clock.advance(0);
    expect(s.news()).toBe(expected);
    expect(s.reports.map((r) => `${r.reason}, ${r.willRestart ? "restart" : "gone"}`)).toEqual(reported);
    expect(top.outcome()).toBe("running");
  });

  test.each([
    ["one_for_one", "end b, start b"],
    ["rest_for_one", "end b, stop d, end d, stop c, end c, start b, start c, start d"],
    ["one_for_all", "end b, stop d, end d, stop c, end c, stop a, end a, start a, start b, start c, start d"],
  ] as const)("%s", async (strategy, expected) => {
    const s = stage();
    const puppets = ["a", "b", "c", "d"].map((id) => s.puppet(id));
    s.supervise(puppets, { strategy });
    await s.clock.advance(0);
    s.news();
    puppets[1]?.crash();
    await s.clock.advance(0);
    expect(s.news()).toBe(expected);
    expect(s.reports).toMatchObject([{ child: "b", reason: "crashed", restarts: 1 }]);
  });

  test("a temporary sibling that a restart takes down does not come back", async () => {
    const s = stage();
    const a = s.puppet("a");
    s.supervise([a, { id: "b", run: s.puppet("b").run, restart: "temporary" }], { strategy: "one_for_all" });
    await s.clock.advance(0);
    s.news();
    a.crash();
    await s.clock.advance(0);
    expect(s.news()).toBe("end a, stop b, end b, start a");
  });

  test.each([["first"], ["last"]])("work that finished by itself %s is not done again", async (when) => {
    const s = stage();
    const [a, b, c] = [s.puppet("a"), s.puppet("b"), s.puppet("c")];
    s.supervise([a, { id: "b", run: b.run, restart: "transient" }, c], { strategy: "rest_for_one" });
    await s.clock.advance(0);
    s.news();
    if (when === "first") b.return();
    a.crash();
    if (when === "last") b.return();
    await s.clock.advance(0);
    expect([a.lives, b.lives, c.lives]).toEqual([2, 1, 2]);
  });

  test("a child that dies before it is ready is restarted like any other, and its right siblings wait", async () => {
    const s = stage();
    const a = s.puppet("a", { startMs: 100 });
    const top = s.supervise([a, s.puppet("b")]);
    await s.clock.advance(50);
    a.crash("no port");
    await s.clock.advance(99);
    expect(s.news()).toBe("start a, end a, start a");
    await s.clock.advance(1);
    expect(s.news()).toBe("start b");
    expect(top.isReady()).toBe(true);
    expect(s.reports).toMatchObject([{ child: "a", reason: "crashed", error: { message: "no port" } }]);
  });

  test("a throw before the first await is a crash", async () => {
    const s = stage();
    let attempts = 0;
    const run: Child = ({ ready }) => {
      attempts += 1;
      if (attempts < 3) throw new TypeError("early");
      ready();
      return new Promise(() => {});
    };
    const top = s.supervise([{ id: "a", run }]);
    await s.clock.advance(0);
    expect([attempts, top.isReady()]).toEqual([3, true]);
    expect(s.reports.map((report) => report.error?.name)).toEqual(["TypeError", "TypeError"]);
  });

  test("while one child takes its time to restart, exits and the request to stop are served", async () => {
    const s = stage();
    const [a, b] = [s.puppet("a"), s.puppet("b")];
    const top = s.supervise([a, b]);
    await s.clock.advance(0);
    a.startMs = Infinity;
    a.crash();
    await s.clock.advance(0);
    s.news();
    b.crash();
    await s.clock.advance(0);
    expect(s.news()).toBe("end b, start b");
    a.crash("failed attempt");
    await s.clock.advance(0);
    expect(s.news()).toBe("end a, start a");
    top.stop();
    await s.clock.advance(0);
    expect(s.news()).toBe("stop b, end b, stop a, end a");
  });

  test("a crash further left during a group restart starts the restart over from there", async () => {
    const s = stage();
    const [a, b, c] = [s.puppet("a"), s.puppet("b"), s.puppet("c", { stopMs: 100 })];
    s.supervise([a, b, c], { strategy: "rest_for_one" });
    await s.clock.advance(0);
    s.news();
    b.crash();
    await s.clock.advance(50);
    a.crash();
    await s.clock.advance(0);
    expect(s.news()).toBe("end b, stop c, end a");
    await s.clock.advance(50);
    expect(s.news()).toBe("end c, start a, start b, start c");
  });
});

describe("escalation", () => {
  test("one exit more than the intensity allows stops all children and crashes upwards", async () => {
    const s = stage();
    const [a, b] = [s.puppet("a"), s.puppet("b")];
    const top = s.supervise([a, b], { intensity: 2, periodMs: 1_000 });
    for (let crash = 0; crash < 3; crash += 1) {
      await s.clock.advance(10);
      s.news();
      b.crash(`number ${crash}`);
    }
    await s.clock.advance(0);
    expect(s.news()).toBe("end b, stop a, end a");
    expect(top.outcome()).toBeInstanceOf(RestartLimitError);
    expect(top.outcome()).toMatchObject({ supervisor: "top", child: "b", cause: { message: "number 2" } });
    expect(s.reports.map((report) => report.willRestart)).toEqual([true, true, false]);
    expect(s.reports.map((report) => report.restarts)).toEqual([1, 2, 2]);
  });

  test("restarts outside the period do not count", async () => {
    const s = stage();
    const a = s.puppet("a");
    const top = s.supervise([a], { intensity: 1, periodMs: 1_000 });
    for (let crash = 0; crash < 5; crash += 1) {
      await s.clock.advance(1_000);
      a.crash();
    }
    await s.clock.advance(999);
    expect(top.outcome()).toBe("running");
    a.crash();
    await s.clock.advance(0);
    expect(top.outcome()).toBeInstanceOf(RestartLimitError);
  });

  test("the parent restarts a supervisor that gave up, with a fresh budget", async () => {
    const s = stage();
    const a = s.puppet("a");
    const report = (r: ExitReport): number => s.reports.push(r);
    const inner = supervise({ id: "inner", children: [a], intensity: 0, clock: s.clock, report });
    const top = s.supervise([{ id: "inner", run: inner, shutdownMs: Infinity }]);
    await s.clock.advance(0);
    a.crash();
    await s.clock.advance(0);
    expect(a.lives).toBe(2);
    expect(top.outcome()).toBe("running");
    expect(s.reports.map((r) => `${r.supervisor}/${r.child} ${r.error?.name} ${r.willRestart}`)).toEqual([
      "inner/a Error false",
      "top/inner RestartLimitError true",
    ]);
  });

  test("a report that throws stops the children and crashes the supervisor", async () => {
    const s = stage();
    const [a, b] = [s.puppet("a"), s.puppet("b")];
    const top = s.supervise([a, b], {
      report: () => {
        throw new Error("log is broken");
      },
    });
    await s.clock.advance(0);
    s.news();
    b.crash();
    await s.clock.advance(0);
    expect(s.news()).toBe("end b, stop a, end a");
    expect(top.outcome()).toMatchObject({ message: "log is broken" });
  });
});

test("1,000 starts and stops leave no listener on the parent's signal and no timer", async () => {
  const { clock, puppet } = stage();
  const parent = new AbortController();
  const a = puppet("a");
  for (let cycle = 0; cycle < 1_000; cycle += 1) {
    const run = supervise({ id: "top", children: [a], intensity: 0, clock, report: () => {} });
    const done = run({ signal: parent.signal, ready: () => a.crash() });
    await expect(done).rejects.toThrow(RestartLimitError);
  }
  expect(getEventListeners(parent.signal, "abort")).toEqual([]);
  expect(clock.pending).toBe(0);
});
