/**
 * Loaded into a gateway by `--import`, whatever the gateway: says how long its event loop was late and what its heap
 * holds, and ends it when the benchmark is gone. On SIGUSR2 it writes a reading to the file named by `BENCH_PROBE`
 * and starts the next window.
 */
import { renameSync, writeFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isMainThread } from "node:worker_threads";

/** The histogram holds the time between ticks of a timer of this period; what exceeds it is delay. */
const PERIOD_MS = 5;
const PARENT_CHECK_MS = 1_000;

const file = process.env["BENCH_PROBE"];
if (file !== undefined && isMainThread) {
  const delays = monitorEventLoopDelay({ resolution: PERIOD_MS });
  delays.enable();
  const collect = process.env["BENCH_PROBE_GC"] === "1" ? garbageCollector() : undefined;

  process.on("SIGUSR2", () => {
    const lateMs = (q: number): number => Math.max(0, delays.percentile(q) / 1e6 - PERIOD_MS);
    const loop = { p50: lateMs(50), p99: lateMs(99), max: lateMs(100) };
    collect?.();
    const { heapUsed, external, rss } = process.memoryUsage();
    writeFileSync(`${file}.new`, JSON.stringify({ loop, heapBytes: heapUsed + external, rssBytes: rss }));
    renameSync(`${file}.new`, file);
    delays.reset();
  });

  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) process.kill(process.pid, "SIGKILL");
  }, PARENT_CHECK_MS).unref();
}

/**
 * A full collection, run until finalizers of the first pass are collected too. Code that grows cold stays: megabytes
 * of it leave at some moment of their own, which would hide what sessions take.
 */
function garbageCollector(): () => void {
  setFlagsFromString("--no-flush-bytecode");
  setFlagsFromString("--expose-gc");
  const gc: unknown = runInNewContext("gc");
  return () => {
    for (let pass = 0; pass < 4; pass += 1) if (typeof gc === "function") gc();
  };
}
