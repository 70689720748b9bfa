import { expect, test } from "vitest";
import { ManualClock } from "../../src/kernel/clock.ts";
import { type LoopLag, watchLag } from "../../src/kernel/lag-watchdog.ts";
import { launch } from "./puppet.ts";

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 15));

test("reports once an interval, sees a blocked loop, and stops with its signal", async () => {
  const clock = new ManualClock();
  const lags: LoopLag[] = [];
  const life = launch(
    watchLag({ clock, intervalMs: 1_000, resolutionMs: 5, onLag: (lag) => lags.push(lag) }),
  );
  expect(life.isReady()).toBe(true);
  await clock.advance(999);
  expect(lags).toEqual([]);

  await turn();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60); // holds the loop for 60 ms, or longer
  await turn();
  await clock.advance(1);
  expect(lags).toHaveLength(1);
  expect(lags[0]?.max).toBeGreaterThanOrEqual(40);
  expect(lags[0]?.p50).toBeGreaterThanOrEqual(0);
  expect(lags[0]?.p99).toBeGreaterThanOrEqual(lags[0]?.p50 ?? NaN);

  life.stop();
  await clock.advance(10_000);
  expect(lags).toHaveLength(1);
  expect(clock.pending).toBe(0);
});

test("an interval without a probe counts as no lag", async () => {
  const clock = new ManualClock();
  const lags: LoopLag[] = [];
  const life = launch(
    watchLag({ clock, intervalMs: 10, resolutionMs: 1_000, onLag: (lag) => lags.push(lag) }),
  );
  await clock.advance(10);
  expect(lags).toEqual([{ p50: 0, p99: 0, max: 0 }]);
  life.stop();
});
