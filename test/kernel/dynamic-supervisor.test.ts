import { getEventListeners } from "node:events";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ManualClock } from "../../src/kernel/clock.ts";
import { type DynamicChild, DynamicSupervisor } from "../../src/kernel/dynamic-supervisor.ts";
import { Cancelled } from "../../src/kernel/scope.ts";
import { type ExitReport, supervise } from "../../src/kernel/supervisor.ts";
import { verifies } from "../support/verifies.ts";
import { launch, Puppet, type PuppetOptions } from "./puppet.ts";

const shutdown = new Cancelled("shutdown");

function stage(maxChildren = 10) {
  const clock = new ManualClock();
  const journal: string[] = [];
  const reports: ExitReport[] = [];
  const sessions = new DynamicSupervisor<Puppet>({
    id: "sessions",
    maxChildren,
    clock,
    report: (r) => reports.push(r),
  });
  const make =
    (id: string, options?: PuppetOptions): (() => DynamicChild<Puppet>) =>
    () => {
      const puppet = new Puppet(id, clock, journal, options);
      return { value: puppet, run: puppet.run, shutdownMs: 100 };
    };
  return { clock, journal, reports, sessions, make };
}

async function checkRace(): Promise<void> {
  const { clock, sessions, make } = stage();
  launch(sessions.run);
  const [first, second] = await Promise.all([
    Promise.resolve().then(() => sessions.start("s1", make("s1"))),
    Promise.resolve().then(() => sessions.start("s1", make("s1"))),
  ]);
  await clock.advance(0);
  expect([first, second]).toMatchObject([{ kind: "started" }, { kind: "existing" }]);
  expect(first).toHaveProperty("value", sessions.get("s1"));
  expect(second).toHaveProperty("value", sessions.get("s1"));
  expect(sessions.get("s1")?.lives).toBe(1);
  expect(sessions.get("s2")).toBeUndefined();
}

describe("the registry", () => {
  verifies("W13", "two racing starters of a key get the same child", checkRace);

  test("a child that asks for its own key finds itself", async () => {
    const { clock, sessions, make } = stage();
    launch(sessions.run);
    const kinds: string[] = [];
    const run = async (): Promise<void> => {
      kinds.push(sessions.start("s1", make("s1")).kind);
    };
    sessions.start("s1", () => ({ ...make("s1")(), run }));
    await clock.advance(0);
    expect(kinds).toEqual(["existing"]);
  });

  test("a child that was told to stop before it began does not begin", async () => {
    const { clock, journal, sessions, make } = stage();
    launch(sessions.run);
    sessions.start("s1", make("s1"));
    await sessions.stop("s1", shutdown);
    await clock.advance(0);
    expect([journal, sessions.size]).toEqual([[], 0]);
  });

  test("a child that ends leaves, and its key can be started anew", async () => {
    const { clock, reports, sessions, make } = stage();
    launch(sessions.run);
    sessions.start("s1", make("s1"));
    sessions.start("s2", make("s2"));
    await clock.advance(0);
    sessions.get("s1")?.return();
    sessions.get("s2")?.crash("poison");
    await clock.advance(0);
    expect(sessions.size).toBe(0);
    expect(reports).toMatchObject([
      { supervisor: "sessions", child: "s2", reason: "crashed", willRestart: false },
    ]);
    expect(sessions.start("s2", make("s2")).kind).toBe("started");
  });

  test("a key whose child is leaving is refused until it has left", async () => {
    const { clock, sessions, make } = stage();
    launch(sessions.run);
    sessions.start("s1", make("s1", { stopMs: 50 }));
    await clock.advance(0);
    const stopped = sessions.stop("s1", shutdown);
    expect(sessions.get("s1")).toBeUndefined();
    expect(sessions.start("s1", make("s1"))).toEqual({ kind: "refused", reason: "leaving" });
    await clock.advance(50);
    await stopped;
    await sessions.gone("s1");
    expect(sessions.start("s1", make("s1")).kind).toBe("started");
  });

  test("children beyond the bound are refused, and those out of service", async () => {
    const { clock, sessions, make } = stage(2);
    expect(sessions.start("s0", make("s0"))).toEqual({ kind: "refused", reason: "closed" });
    const life = launch(sessions.run);
    const kinds = ["s1", "s2", "s3", "s1"].map((key) => sessions.start(key, make(key)));
    expect(kinds).toMatchObject([
      { kind: "started" },
      { kind: "started" },
      { kind: "refused", reason: "full" },
      { kind: "existing" },
    ]);
    life.stop();
    await clock.advance(0);
    expect(sessions.start("s4", make("s4"))).toEqual({ kind: "refused", reason: "closed" });
  });
});

describe("stopping", () => {
  test("asks in reverse start order and waits for all together", async () => {
    const { clock, journal, sessions, make } = stage();
    const life = launch(sessions.run);
    for (const key of ["s1", "s2", "s3"]) sessions.start(key, make(key, { stopMs: 60 }));
    await clock.advance(0);
    journal.length = 0;
    life.stop();
    await clock.advance(59);
    expect(journal).toEqual(["stop s3", "stop s2", "stop s1"]);
    expect(life.outcome()).toBe("running");
    await clock.advance(1);
    expect(life.outcome()).toBe("returned");
    expect([sessions.size, clock.pending]).toEqual([0, 0]);
    expect(getEventListeners(life.signal, "abort")).toEqual([]);
  });

  test("what ignores its signal is abandoned at its deadline", async () => {
    const { clock, reports, sessions, make } = stage();
    const life = launch(sessions.run);
    sessions.start("s1", make("s1", { stopMs: Infinity }));
    sessions.start("s2", make("s2", { stopMs: 10 }));
    await clock.advance(0);
    life.stop();
    await clock.advance(100);
    expect(life.outcome()).toBe("returned");
    expect(reports).toMatchObject([{ child: "s1", reason: "abandoned" }]);
  });

  test("after a stop it can serve again, as under a supervisor that restarts it", async () => {
    const { clock, sessions, make } = stage();
    const life = launch(sessions.run);
    sessions.start("s1", make("s1"));
    life.stop();
    await clock.advance(0);
    launch(sessions.run);
    expect(sessions.start("s1", make("s1")).kind).toBe("started");
  });
});

test("a poison key quarantines itself and costs its siblings nothing", async () => {
  const { clock, reports, sessions, make } = stage();
  launch(sessions.run);
  const poison: PuppetOptions = {};
  const puppet = new Puppet("loop", clock, [], poison);
  const report = (r: ExitReport): number => reports.push(r);
  const limits = { intensity: 3, periodMs: 60_000 };
  const run = supervise({ id: "session", children: [puppet], clock, report, ...limits });
  sessions.start("poisoned", () => ({ value: puppet, run }));
  sessions.start("healthy", make("healthy"));
  for (let crash = 0; crash < 4; crash += 1) {
    await clock.advance(1);
    puppet.crash();
  }
  await clock.advance(0);
  expect(sessions.get("poisoned")).toBeUndefined();
  expect(sessions.get("healthy")?.lives).toBe(1);
  expect(reports.at(-1)).toMatchObject({ child: "poisoned", error: { name: "RestartLimitError" } });
});

test("at no time does a key have two children, and the bound holds", async () => {
  const keys = ["k0", "k1", "k2", "k3"] as const;
  const commands = fc.record({
    key: fc.constantFrom(...keys),
    what: fc.constantFrom("start" as const, "crash" as const, "return" as const, "stop" as const),
    stopMs: fc.constantFrom(0, 5, Infinity),
    pauseMs: fc.constantFrom(0, 0, 3, 40),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(commands, { maxLength: 30 }), async (script) => {
      const { clock, sessions, make } = stage(3);
      const life = launch(sessions.run);
      const live = new Map<string, number>();
      const violations: string[] = [];
      const watch: PuppetOptions["watch"] = (what, id) => {
        if (what === "start" && live.has(id)) violations.push(`two of ${id}`);
        if (what === "start") live.set(id, 1);
        if (what === "stop" || what === "end") live.delete(id);
        if (live.size > 3) violations.push(`${live.size} children`);
      };
      for (const { key, what, stopMs, pauseMs } of script) {
        if (what === "start") sessions.start(key, make(key, { stopMs, watch }));
        else if (what === "stop") void sessions.stop(key, shutdown);
        else sessions.get(key)?.[what]();
        if (pauseMs > 0) await clock.advance(pauseMs);
      }
      life.stop();
      await clock.advance(100);
      expect(violations).toEqual([]);
      expect([life.outcome(), sessions.size, clock.pending]).toEqual(["returned", 0, 0]);
    }),
    { numRuns: 100 },
  );
});
