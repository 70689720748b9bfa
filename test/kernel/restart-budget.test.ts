import * as fc from "fast-check";
import { expect, test } from "vitest";
import { RestartBudget } from "../../src/kernel/restart-budget.ts";

test("grants exactly what keeps every window within the intensity", () => {
  const pauses = fc.array(fc.nat({ max: 30 }), { maxLength: 60 });
  fc.assert(
    fc.property(fc.nat({ max: 5 }), pauses, (intensity, waits) => {
      const budget = new RestartBudget(intensity, 100);
      const granted: number[] = [];
      let now = 0;
      for (const wait of waits) {
        now += wait;
        const recent = granted.filter((time) => now - time < 100).length;
        expect(budget.spend(now)).toBe(recent < intensity);
        if (recent < intensity) granted.push(now);
        expect(budget.spent).toBeLessThanOrEqual(intensity);
      }
    }),
  );
});
