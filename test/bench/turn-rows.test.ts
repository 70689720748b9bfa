import { expect, test } from "vitest";
import { turnRows, type Sample, type TurnRound } from "../../bench/goals/turn-rows.ts";
import { readOptions } from "../../bench/options.ts";
import type { Outcome } from "../../bench/rig.ts";
import type { SubjectName } from "../../bench/subjects.ts";
import type { Row } from "../../bench/verdict.ts";

/** A gateway that costs `factor` times the floor. */
interface Costs {
  readonly factor: number;
  readonly loopP99: number;
  readonly problem?: string;
}

const floor: Costs = { factor: 1, loopP99: 2 };

test("ratios, tail and loop delay are judged against their bars", () => {
  const rows = rowsFor({ factor: 1.4, loopP99: 3 });
  expect(rows.map((row) => [row.goal, row.verdict])).toEqual([
    ["G1", "pass"],
    ["G2", "pass"],
    ["G3", "pass"],
    ["G9", "pass"],
    ["G19", "pass"],
  ]);
  expect(rows[0]?.ratio?.median).toBeCloseTo(1.4, 5);
  expect(rows[1]?.ratio?.median).toBeCloseTo(1.4, 5); // the model's own 0.5 ms is taken off both
  expect(rows[3]?.ratio?.median).toBeCloseTo(1 / 1.4, 5);
});

test("a gateway that costs twice the floor misses", () => {
  const verdicts = rowsFor({ factor: 2, loopP99: 30 }).map((row) => row.verdict);
  expect(verdicts).toEqual(["miss", "miss", "pass", "miss", "miss"]);
});

test("void points leave nothing to judge, and say why", () => {
  const rows = rowsFor({ factor: 1, loopP99: 2, problem: "3 turns failed" });
  expect(rows[0]?.verdict).toBe("unmeasurable");
  expect(rows[0]?.notes.join()).toContain("3 turns failed");
});

function rowsFor(beamclaw: Costs): readonly Row[] {
  const options = readOptions([]);
  if (options === undefined) throw new Error("no options");
  const rounds = Array.from({ length: 7 }, () => ({ calibrationMs: 20, points: round(beamclaw) }));
  return turnRows(rounds, options);
}

function round(beamclaw: Costs): TurnRound {
  const samples = new Map<SubjectName, Sample>([
    ["floor", sample(floor)],
    ["beamclaw", sample(beamclaw)],
  ]);
  const direct = { ...sample(floor).outcome, firstTokenMs: [0.5] };
  return { direct, samples: { serial: samples, burst: samples, paced: samples } };
}

function sample({ factor, loopP99, problem = "" }: Costs): Sample {
  const outcome: Outcome = {
    turns: 100,
    elapsedMs: 100 * factor,
    gatewayCpuMs: 50 * factor,
    firstTokenMs: Array.from({ length: 100 }, () => 0.5 + factor),
    valid: problem === "",
    problem,
  };
  const model = { requests: 100, bodyBytes: 3_000_000, sampled: 2, sampledMessages: 104 };
  return { outcome, loop: { p50: 1, p99: loopP99, max: 2 * loopP99 }, model };
}
