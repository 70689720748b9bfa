import { expect, test } from "vitest";
import { renderTable } from "../../bench/report.ts";
import type { Row } from "../../bench/verdict.ts";

const ratio: Row = {
  goal: "G1",
  what: "CPU",
  unit: "ms",
  judged: "ratio",
  subject: 0.7,
  floor: 0.5,
  naive: 2.5,
  ratio: { median: 1.4, lower: 1.35, upper: 1.45 },
  bar: { atMost: 1.6 },
  verdict: "pass",
  notes: ["7 rounds"],
};
const skipped: Row = {
  goal: "G11",
  what: "syncs",
  unit: "",
  judged: "value",
  subject: Number.NaN,
  bar: { atMost: 2.05 },
  verdict: "skipped",
  notes: [],
};

test("prints a row a goal, and the notes under the table", () => {
  const lines = renderTable([ratio, skipped]).split("\n");
  expect(lines[2]).toMatch(
    /\| G1 .*0\.700 ms.*0\.500 ms.*2\.50 ms.*1\.40 \(1\.35\.\.1\.45\).*≤ 1\.6 x .*pass/,
  );
  expect(lines[3]).toMatch(/\| G11 .*\| - .*≤ 2\.05 .*skipped/);
  expect(lines.at(-1)).toBe("- G1, CPU: 7 rounds");
  expect(new Set(lines.slice(0, 4).map((line) => line.length)).size).toBe(1);
});
