import { getEventListeners } from "node:events";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ManualClock, sleep, SystemClock } from "../../src/kernel/clock.ts";

describe("ManualClock", () => {
  test("fires in order of due time, equal ones in the order in which they were set", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: 20 }), { maxLength: 30 }), async (delays) => {
        const clock = new ManualClock();
        const fired: { delay: number; index: number; at: number }[] = [];
        for (const [index, delay] of delays.entries())
          clock.setTimer(delay, () => fired.push({ delay, index, at: clock.monotonic() }));
        await clock.advance(20);
        const expected = delays
          .map((delay, index) => ({ delay, index, at: delay }))
          .toSorted((left, right) => left.delay - right.delay || left.index - right.index);
        expect(fired).toEqual(expected);
        expect(clock.pending).toBe(0);
      }),
      { numRuns: 50 },
    );
  });

  test("lets promise jobs settle between timers, and fires what they set", async () => {
    const clock = new ManualClock();
    const order: string[] = [];
    const steps = async (): Promise<void> => {
      for (let step = 0; step < 3; step += 1) {
        await sleep(clock, 10, AbortSignal.any([]));
        for (let job = 0; job < 50; job += 1) await Promise.resolve();
        order.push(`step at ${clock.monotonic()}`);
      }
    };
    void steps();
    clock.setTimer(15, () => order.push("timer at 15"));
    await clock.advance(30);
    expect(order).toEqual(["step at 10", "timer at 15", "step at 20", "step at 30"]);
  });

  test("a cancelled timer does not fire, and cancelling twice or late is nothing", async () => {
    const clock = new ManualClock();
    let fired = 0;
    const cancelled = clock.setTimer(5, () => (fired += 100));
    const kept = clock.setTimer(5, () => (fired += 1));
    cancelled.cancel();
    cancelled.cancel();
    await clock.advance(5);
    kept.cancel();
    expect([fired, clock.pending]).toEqual([1, 0]);
  });

  test("setting the wall clock moves neither timers nor the monotonic time", async () => {
    const clock = new ManualClock(1_000);
    let fired = false;
    clock.setTimer(10, () => (fired = true));
    clock.setWallClock(500);
    expect([clock.now(), clock.monotonic()]).toEqual([500, 0]);
    await clock.advance(9);
    expect([clock.now(), fired]).toEqual([509, false]);
    await clock.advance(1);
    expect([clock.now(), fired]).toEqual([510, true]);
  });

  test("a delay in the past is due now, one that is no number is refused", async () => {
    const clock = new ManualClock();
    let fired = false;
    clock.setTimer(-5, () => (fired = true));
    await clock.advance(0);
    expect([fired, clock.monotonic()]).toEqual([true, 0]);
    expect(() => clock.setTimer(NaN, () => {})).toThrow(RangeError);
    expect(() => new SystemClock().setTimer(NaN, () => {})).toThrow(RangeError);
  });
});

describe("SystemClock", () => {
  test("a timer never fires early", async () => {
    const clock = new SystemClock();
    const waits = Array.from({ length: 20 }, (_, index) => index * 0.3);
    const early = await Promise.all(
      waits.map(async (ms) => {
        const from = clock.monotonic();
        await sleep(clock, ms, new AbortController().signal);
        return clock.monotonic() - from < ms;
      }),
    );
    expect(early).not.toContain(true);
  });

  test("a delay beyond what Node can count does not fire at once", async () => {
    const clock = new SystemClock();
    let fired = false;
    const timer = clock.setTimer(2 ** 31, () => (fired = true));
    await sleep(clock, 5, new AbortController().signal);
    timer.cancel();
    expect(fired).toBe(false);
  });

  test("timers do not keep the process alive", () => {
    const before = process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const timer = new SystemClock().setTimer(1_000_000, () => {});
    const during = process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    timer.cancel();
    expect(during).toBe(before);
  });
});

describe("sleep", () => {
  test("rejects with the signal's reason at once, leaving neither timer nor listener", async () => {
    const clock = new ManualClock();
    const controller = new AbortController();
    const reason = new Error("enough");
    const sleeping = sleep(clock, 1_000, controller.signal);
    expect(clock.pending).toBe(1);
    controller.abort(reason);
    await expect(sleeping).rejects.toBe(reason);
    await expect(sleep(clock, 1_000, controller.signal)).rejects.toBe(reason);
    expect(clock.pending).toBe(0);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  test("takes its listener away when the time has come", async () => {
    const clock = new ManualClock();
    const { signal } = new AbortController();
    const sleeping = sleep(clock, 10, signal);
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    await clock.advance(10);
    await sleeping;
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});
