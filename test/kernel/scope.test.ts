import { getEventListeners } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { ManualClock, sleep } from "../../src/kernel/clock.ts";
import {
  Cancelled,
  isCancellation,
  linkSignals,
  onAbort,
  Scope,
  WorkAbandoned,
} from "../../src/kernel/scope.ts";

function stage(parent?: AbortSignal) {
  const clock = new ManualClock();
  const errors: [string, Error][] = [];
  const scope = new Scope({
    clock,
    ...(parent === undefined ? {} : { parent }),
    closeMs: 100,
    limit: 3,
    onError: (work, error) => errors.push([work, error]),
  });
  return { clock, errors, scope };
}

describe("onAbort", () => {
  test("calls once, at once if the signal has aborted, and not after disposal", () => {
    const controller = new AbortController();
    let calls = 0;
    const react = (): number => (calls += 1);
    using kept = onAbort(controller.signal, react);
    onAbort(controller.signal, () => (calls += 100))[Symbol.dispose]();
    controller.abort();
    expect(calls).toBe(1);
    onAbort(controller.signal, react)[Symbol.dispose]();
    expect(calls).toBe(2);
    kept[Symbol.dispose]();
  });
});

describe("linkSignals", () => {
  test("aborts with the first source and its reason, and lets go of all", () => {
    const [left, right] = [new AbortController(), new AbortController()];
    const link = linkSignals(left.signal, right.signal);
    const reason = new Cancelled("user");
    right.abort(reason);
    left.abort(new Cancelled("shutdown"));
    expect(link.signal.reason).toBe(reason);
    for (const { signal } of [left, right]) expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test("is aborted from the start when a source is, whichever it is", () => {
    const long = new AbortController();
    for (const sources of [
      [AbortSignal.abort(), long.signal],
      [long.signal, AbortSignal.abort()],
    ]) {
      expect(linkSignals(...sources).signal.aborted).toBe(true);
      expect(getEventListeners(long.signal, "abort")).toEqual([]);
    }
  });

  test("disposing leaves no listener on a long-lived source", () => {
    const { signal } = new AbortController();
    for (let round = 0; round < 1_000; round += 1) linkSignals(signal)[Symbol.dispose]();
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

test("a cancellation is the reason, a Cancelled or an AbortError, and only after the abort", async () => {
  const controller = new AbortController();
  expect(isCancellation(new Cancelled("user"), controller.signal)).toBe(false);
  const wrapped = delay(1_000, undefined, { signal: controller.signal }).catch((error: unknown) => error);
  const reason = new Error("go");
  controller.abort(reason);
  expect(isCancellation(reason, controller.signal)).toBe(true);
  expect(isCancellation(await wrapped, controller.signal)).toBe(true);
  expect(isCancellation(new Cancelled("timeout"), controller.signal)).toBe(true);
  expect(isCancellation(new Error("go"), controller.signal)).toBe(false);
});

describe("Scope", () => {
  test("close aborts the work with its reason and waits for it", async () => {
    const { clock, errors, scope } = stage();
    const seen: unknown[] = [];
    const work = async (signal: AbortSignal): Promise<void> => {
      try {
        await sleep(clock, 10_000, signal);
      } finally {
        seen.push(signal.reason);
      }
    };
    expect(scope.spawn("one", work)).toBe(true);
    expect(scope.spawn("two", work)).toBe(true);
    expect(scope.size).toBe(2);
    const reason = new Cancelled("disconnected");
    await scope.close(reason);
    expect(seen).toEqual([reason, reason]);
    expect([scope.size, clock.pending, errors.length]).toEqual([0, 0, 0]);
    expect(scope.spawn("late", work)).toBe(false);
  });

  test("a failure is reported and leaves the other work alone", async () => {
    const { clock, errors, scope } = stage();
    scope.spawn("good", (signal) => sleep(clock, 50, signal));
    scope.spawn("bad", () => Promise.reject(new Error("no disk")));
    scope.spawn("worse", () => {
      throw new Error("no promise");
    });
    await clock.advance(10);
    expect(errors.map(([work, { message }]) => `${work}: ${message}`)).toEqual([
      "worse: no promise",
      "bad: no disk",
    ]);
    expect([scope.size, scope.signal.aborted]).toEqual([1, false]);
    await clock.advance(40);
    expect(scope.size).toBe(0);
  });

  test("work that ignores the signal is left behind at the deadline, by name", async () => {
    const { clock, errors, scope } = stage();
    scope.spawn("stubborn", () => new Promise(() => {}));
    scope.spawn("polite", (signal) => sleep(clock, 1_000, signal));
    let isClosed = false;
    const closing = scope.close(new Cancelled("shutdown")).then(() => (isClosed = true));
    await clock.advance(99);
    expect(isClosed).toBe(false);
    await clock.advance(1);
    await closing;
    expect(errors).toEqual([["stubborn", expect.any(WorkAbandoned)]]);
  });

  test("follows its parent, and lets go of it when closed", async () => {
    const parent = new AbortController();
    const [first, second] = [stage(parent.signal).scope, stage(parent.signal).scope];
    await first.close(new Cancelled("timeout"));
    expect(getEventListeners(parent.signal, "abort")).toHaveLength(1);
    const reason = new Cancelled("user");
    parent.abort(reason);
    expect(second.signal.reason).toBe(reason);
    expect(first.signal.reason).toMatchObject({ reason: "timeout" });
    await second.close(new Cancelled("shutdown"));
    expect(getEventListeners(parent.signal, "abort")).toEqual([]);
  });

  test("refuses work beyond its limit", async () => {
    const { clock, scope } = stage();
    const started = ["a", "b", "c", "d"].map((name) =>
      scope.spawn(name, (signal) => sleep(clock, 10, signal)),
    );
    expect(started).toEqual([true, true, true, false]);
    await scope.close(new Cancelled("shutdown"));
  });

  test("is closed at the end of its block, whoever closes it first", async () => {
    let ended = 0;
    const { clock, scope } = stage();
    {
      await using owned = scope;
      owned.spawn("work", (signal) => sleep(clock, 10, signal).finally(() => (ended += 1)));
      void owned.close(new Cancelled("user"));
    }
    expect(ended).toBe(1);
    expect(scope.signal.reason).toMatchObject({ reason: "user" });
  });
});
