import * as fc from "fast-check";
import { expect, test } from "vitest";
import { backoffDelay } from "../../src/kernel/backoff.ts";

test("the ceiling grows by the factor up to the maximum", () => {
  const backoff = { baseMs: 100, maxMs: 1_000, factor: 2 };
  const almostOne = 1 - Number.EPSILON;
  const ceilings = [0, 1, 2, 3, 4, 5_000].map((attempt) => backoffDelay(backoff, attempt, () => almostOne));
  expect(ceilings).toEqual([100, 200, 400, 800, 1_000, 1_000]);
});

test("every whole millisecond from 0 to the ceiling is possible, and nothing else", () => {
  const settings = fc.record({
    baseMs: fc.nat({ max: 5_000 }),
    maxMs: fc.nat({ max: 60_000 }),
    factor: fc.double({ min: 1, max: 4, noNaN: true }),
  });
  fc.assert(
    fc.property(settings, fc.nat({ max: 2_000 }), fc.nat({ max: 2 ** 32 - 1 }), (backoff, attempt, draw) => {
      const grown = backoff.baseMs === 0 ? 0 : backoff.baseMs * backoff.factor ** attempt;
      const delay = backoffDelay(backoff, attempt, () => draw / 2 ** 32);
      expect(Number.isInteger(delay)).toBe(true);
      expect(delay).toBeGreaterThanOrEqual(0);
      expect(delay).toBeLessThanOrEqual(Math.min(backoff.maxMs, grown));
    }),
  );
  expect(backoffDelay({ baseMs: 100, maxMs: 100, factor: 2 }, 3, () => 0)).toBe(0);
});
