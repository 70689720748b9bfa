/**
 * Measures how long the event loop keeps others waiting. There is no preemption: one long computation stalls
 * every conversation, and this is how it shows.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Child } from "./child.ts";
import { type Clock, sleep } from "./clock.ts";

/** Delays of the event loop during one interval, in milliseconds; 0 is a loop that was never late. */
export interface LoopLag {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface LagWatchdogOptions {
  readonly clock: Clock;
  /** How often to report, in milliseconds; 10,000 unless told. */
  readonly intervalMs?: number;
  /** How often the loop is probed, in milliseconds; 20 unless told. A shorter delay goes unseen. */
  readonly resolutionMs?: number;
  readonly onLag: (lag: LoopLag) => void;
}

export function watchLag({
  clock,
  intervalMs = 10_000,
  resolutionMs = 20,
  onLag,
}: LagWatchdogOptions): Child {
  return async ({ signal, ready }) => {
    const histogram = monitorEventLoopDelay({ resolution: resolutionMs });
    // Node records the time between two probes, which includes the probe's own interval.
    const lateMs = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - resolutionMs);
    histogram.enable();
    try {
      ready();
      while (!signal.aborted) {
        await sleep(clock, intervalMs, signal);
        onLag({
          p50: lateMs(histogram.percentile(50)),
          p99: lateMs(histogram.percentile(99)),
          max: lateMs(histogram.max),
        });
        histogram.reset();
      }
    } finally {
      histogram.disable();
    }
  };
}
