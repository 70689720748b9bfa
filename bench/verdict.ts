/** What a goal asks for, and whether a measurement meets it. */
import { median, spread, type Spread } from "./statistics.ts";

export type Bar = { readonly atMost: number } | { readonly atLeast: number };

/** `wide`: the median meets the bar but the bad quartile lies more than 15 % beyond it, so more rounds are needed. */
export type Verdict = "pass" | "miss" | "wide" | "unmeasurable" | "skipped";

/** One line of the table. `subject`, `floor` and `naive` are in `unit`; the bar applies to `judged`. */
export interface Row {
  readonly goal: string;
  readonly what: string;
  readonly unit: string;
  readonly judged: "ratio" | "value";
  readonly subject: number;
  readonly floor?: number;
  readonly naive?: number;
  readonly ratio?: Spread;
  /** Absent where nothing came out that could be held against it. */
  readonly bar?: Bar;
  readonly verdict: Verdict;
  readonly notes: readonly string[];
}

/** How far beyond the bar the bad quartile may lie. */
const TOLERANCE = 0.15;

export function meets(value: number, bar: Bar): boolean {
  return "atMost" in bar ? value <= bar.atMost : value >= bar.atLeast;
}

/** Judges a quantity that was taken once per round; fewer than `minimum` rounds prove nothing. */
export function judgeRounds(values: readonly number[], bar: Bar, minimum: number): Verdict {
  const usable = values.filter((value) => Number.isFinite(value));
  if (usable.length < minimum) return "unmeasurable";
  if (!meets(median(usable), bar)) return "miss";
  const { lower, upper } = spread(usable);
  const bad = "atMost" in bar ? upper > bar.atMost * (1 + TOLERANCE) : lower < bar.atLeast * (1 - TOLERANCE);
  return bad ? "wide" : "pass";
}

/** Judges a count, or a figure that already is a summary. */
export function judgeValue(value: number, bar: Bar): Verdict {
  if (!Number.isFinite(value)) return "unmeasurable";
  return meets(value, bar) ? "pass" : "miss";
}

/** Judges a tail: where the floor misses the bar too, the neighbours on this machine were measured, not the subject. */
export function judgeTail(value: number, floor: number, bar: Bar): Verdict {
  const verdict = judgeValue(value, bar);
  return verdict === "miss" && !meets(floor, bar) ? "unmeasurable" : verdict;
}
