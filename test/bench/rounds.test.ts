import { expect, test } from "vitest";
import { fewestRounds, takeRound, undisturbed } from "../../bench/rounds.ts";

test("drops the rounds whose calibration took half as long again", () => {
  const rounds = [20, 21, 29, 31, 60].map((calibrationMs) => ({ calibrationMs, points: calibrationMs }));
  expect(undisturbed(rounds)).toEqual({ rounds: [20, 21, 29], dropped: 2, disturbance: 3 });
});

test("wants five rounds of seven, and at least one", () => {
  expect([7, 14, 3, 1].map(fewestRounds)).toEqual([5, 10, 2, 1]);
});

test("a round carries what its visit returned", async () => {
  const round = await takeRound(() => Promise.resolve("points"));
  expect(round.points).toBe("points");
  expect(round.calibrationMs).toBeGreaterThan(0);
});
