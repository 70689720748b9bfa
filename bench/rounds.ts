/**
 * Rounds: each visits everything that is compared, so that a noisy minute hits all of it; only figures of one round are
 * ever divided by each other. A fixed CPU loop before and after tells how disturbed the round was.
 */
import { performance } from "node:perf_hooks";

/** A round whose loop took this many times the quickest loop's time is dropped. */
const DISTURBED = 1.5;

export interface Round<T> {
  readonly calibrationMs: number;
  readonly points: T;
}

export interface Kept<T> {
  readonly rounds: readonly T[];
  readonly dropped: number;
  /** Slowest over quickest calibration, dropped rounds included. */
  readonly disturbance: number;
}

/** Runs `visit` as one round. */
export async function takeRound<T>(visit: () => Promise<T>): Promise<Round<T>> {
  const before = calibrate();
  const points = await visit();
  return { calibrationMs: Math.max(before, calibrate()), points };
}

export function undisturbed<T>(rounds: readonly Round<T>[]): Kept<T> {
  const times = rounds.map((round) => round.calibrationMs);
  const quickest = Math.min(...times);
  const kept = rounds.filter((round) => round.calibrationMs <= quickest * DISTURBED);
  return {
    rounds: kept.map((round) => round.points),
    dropped: rounds.length - kept.length,
    disturbance: Math.max(...times) / quickest,
  };
}

/** Rounds that must remain: five of the usual seven. */
export function fewestRounds(planned: number): number {
  return Math.max(1, Math.floor((planned * 5) / 7));
}

/** Milliseconds that a fixed piece of arithmetic takes now, waits for a core included; long enough to meet a neighbour. */
function calibrate(): number {
  return [0, 1, 2, 3, 4].reduce((sum, seed) => sum + arithmeticMs(seed), 0);
}

function arithmeticMs(seed: number): number {
  const began = performance.now();
  let x = seed + 1;
  for (let i = 0; i < 6_000_000; i += 1) x = (Math.imul(x, 1664525) + 1013904223) | 0;
  // The result must be used, or the compiler may drop the loop.
  return x === 0.5 ? 0 : performance.now() - began;
}
