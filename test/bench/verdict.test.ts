import { expect, test } from "vitest";
import { judgeRounds, judgeTail, judgeValue } from "../../bench/verdict.ts";

test.each([
  ["pass", [1.4, 1.5, 1.55], { atMost: 1.6 }],
  ["miss", [1.5, 1.7, 1.7], { atMost: 1.6 }],
  ["wide", [1.2, 1.5, 2.5], { atMost: 1.6 }],
  ["pass", [0.75, 0.8, 0.9], { atLeast: 0.7 }],
  ["miss", [0.6, 0.65, 0.9], { atLeast: 0.7 }],
  ["wide", [0.3, 0.75, 0.9], { atLeast: 0.7 }],
] as const)("rounds: %s", (verdict, values, bar) => {
  expect(judgeRounds(values, bar, 3)).toBe(verdict);
});

test("too few rounds prove nothing, and void ones do not count", () => {
  expect(judgeRounds([1, 1, Number.NaN], { atMost: 2 }, 3)).toBe("unmeasurable");
});

test("a value meets its bar or not, and NaN is neither", () => {
  expect(judgeValue(2.05, { atMost: 2.05 })).toBe("pass");
  expect(judgeValue(2.06, { atMost: 2.05 })).toBe("miss");
  expect(judgeValue(Number.NaN, { atMost: 2.05 })).toBe("unmeasurable");
});

test("a tail is not held against a subject where the floor has it too", () => {
  expect(judgeTail(30, 5, { atMost: 20 })).toBe("miss");
  expect(judgeTail(30, 25, { atMost: 20 })).toBe("unmeasurable");
  expect(judgeTail(10, 25, { atMost: 20 })).toBe("pass");
});
