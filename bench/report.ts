/** The table that `npm run bench` prints. */
import type { Row, Bar } from "./verdict.ts";

const HEADINGS = [
  "goal",
  "what",
  "subject",
  "floor",
  "naive",
  "ratio to floor (quartiles)",
  "bar",
  "verdict",
] as const;

/** Markdown, padded so that it also reads well in a terminal; notes follow below, each under its goal. */
export function renderTable(rows: readonly Row[]): string {
  const cells = [HEADINGS, ...rows.map(rowCells)];
  const widths = HEADINGS.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  const rule = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`;
  const notes = rows.flatMap((row) => row.notes.map((note) => `- ${row.goal}, ${row.what}: ${note}`));
  return [line(HEADINGS), rule, ...cells.slice(1).map(line), "", ...notes].join("\n");
}

function rowCells(row: Row): readonly string[] {
  const figure = (value: number | undefined): string =>
    value === undefined || !Number.isFinite(value) ? "-" : `${digits(value)} ${row.unit}`.trimEnd();
  const ratio =
    row.ratio === undefined || !Number.isFinite(row.ratio.median)
      ? "-"
      : `${digits(row.ratio.median)} (${digits(row.ratio.lower)}..${digits(row.ratio.upper)})`;
  const unit = row.judged === "ratio" ? "x" : row.unit;
  return [
    row.goal,
    row.what,
    figure(row.subject),
    figure(row.floor),
    figure(row.naive),
    ratio,
    row.bar === undefined ? "-" : barText(row.bar, unit),
    row.verdict,
  ];
}

function barText(bar: Bar, unit: string): string {
  return ("atMost" in bar ? `≤ ${bar.atMost} ${unit}` : `≥ ${bar.atLeast} ${unit}`).trimEnd();
}

/** Three significant digits, without an exponent. */
function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  return value.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : 3);
}
