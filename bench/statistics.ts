/** Order statistics of small samples, and the few decisions that the benchmark takes with them. All functions are pure. */

/** Median and quartiles of one quantity over rounds. */
export interface Spread {
  readonly median: number;
  readonly lower: number;
  readonly upper: number;
}

/** Linear interpolation between closest ranks (Hyndman and Fan, type 7). `q` in 0..1; NaN for no values. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const position = (sorted.length - 1) * q;
  const below = sorted[Math.floor(position)] ?? Number.NaN;
  const above = sorted[Math.ceil(position)] ?? Number.NaN;
  return below === above ? below : below + (above - below) * (position - Math.floor(position));
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export function spread(values: readonly number[]): Spread {
  return { median: median(values), lower: quantile(values, 0.25), upper: quantile(values, 0.75) };
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Theil-Sen slope: the median of all pairwise slopes, deaf to a stray sample. NaN below two distinct `x`. */
export function slope(points: readonly Point[]): number {
  const slopes = points.flatMap((a, i) =>
    points
      .slice(i + 1)
      .filter((b) => b.x !== a.x)
      .map((b) => (b.y - a.y) / (b.x - a.x)),
  );
  return median(slopes);
}

/** 95 % bootstrap interval of the median (percentile method). `random` yields 0 <= x < 1. */
export function medianInterval(
  values: readonly number[],
  random: () => number,
  resamples = 2000,
): { readonly low: number; readonly high: number } {
  const medians = Array.from({ length: resamples }, () =>
    median(values.map(() => values[Math.floor(random() * values.length)] ?? Number.NaN)),
  );
  return { low: quantile(medians, 0.025), high: quantile(medians, 0.975) };
}

/** mulberry32: a small generator with a seed, so that a run's order and intervals can be repeated. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Fisher-Yates on a copy. */
export function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const keyed = items.map((item) => ({ item, key: random() }));
  return keyed.toSorted((a, b) => a.key - b.key).map(({ item }) => item);
}

/**
 * Whether latencies pile up near 40 ms, the mark of Nagle's algorithm meeting a delayed ACK: at least one sample
 * in 500 lies in 36..46 ms, and those 10 ms hold more than twice as many as the 10 ms on either side.
 */
export function hasDelayedAckMode(latenciesMs: readonly number[]): boolean {
  const within = (from: number, to: number): number =>
    latenciesMs.filter((ms) => ms >= from && ms < to).length;
  const suspect = within(36, 46);
  return suspect * 500 >= latenciesMs.length && suspect > 2 * Math.max(within(26, 36), within(46, 56));
}
