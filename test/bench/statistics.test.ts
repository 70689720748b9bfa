import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  hasDelayedAckMode,
  median,
  medianInterval,
  quantile,
  seededRandom,
  shuffled,
  slope,
  spread,
} from "../../bench/statistics.ts";

const sample = fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 40 });

describe("order statistics", () => {
  test("interpolate between ranks", () => {
    expect(quantile([4, 1, 3, 2], 0.5)).toBe(2.5);
    expect(quantile([10], 0.99)).toBe(10);
    expect(spread([1, 2, 3, 4, 5])).toEqual({ median: 3, lower: 2, upper: 4 });
    expect(median([])).toBeNaN();
  });

  test("stay inside the sample and in order", () => {
    fc.assert(
      fc.property(sample, (values) => {
        const { lower, median: middle, upper } = spread(values);
        expect(lower).toBeGreaterThanOrEqual(Math.min(...values));
        expect(upper).toBeLessThanOrEqual(Math.max(...values));
        expect(lower <= middle && middle <= upper).toBe(true);
      }),
    );
  });

  test("the interval holds the median and is repeatable", () => {
    fc.assert(
      fc.property(sample, (values) => {
        const interval = medianInterval(values, seededRandom(7), 100);
        expect(interval).toEqual(medianInterval(values, seededRandom(7), 100));
        expect(interval.low).toBeLessThanOrEqual(interval.high);
      }),
      { numRuns: 20 },
    );
  });
});

const ascending = (a: number, b: number): number => a - b;

test("the slope ignores a stray sample", () => {
  const points = [0, 1, 2, 3, 4].map((x) => ({ x, y: 5 + 2 * x }));
  expect(slope(points)).toBe(2);
  expect(slope([...points, { x: 5, y: 9000 }])).toBeCloseTo(2, 5);
  expect(slope([{ x: 1, y: 1 }])).toBeNaN();
});

test("a shuffle is a permutation that its seed repeats", () => {
  fc.assert(
    fc.property(fc.array(fc.nat()), fc.nat(), (items, seed) => {
      const order = shuffled(items, seededRandom(seed));
      expect(order).toEqual(shuffled(items, seededRandom(seed)));
      expect(order.toSorted(ascending)).toEqual(items.toSorted(ascending));
    }),
  );
});

describe("hasDelayedAckMode", () => {
  const quick = Array.from({ length: 990 }, (_, i) => 1 + (i % 10) / 10);

  test("sees turns that pile up near 40 ms", () => {
    expect(hasDelayedAckMode([...quick, ...Array.from({ length: 10 }, () => 40.8)])).toBe(true);
  });

  test("takes neither a stray turn nor a broad tail for one", () => {
    expect(hasDelayedAckMode([...quick, 40.8])).toBe(false);
    expect(hasDelayedAckMode([...quick, ...Array.from({ length: 60 }, (_, i) => i)])).toBe(false);
  });
});
