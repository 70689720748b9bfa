/**
 * `npm run bench`: the goals of `docs/performance.md`, measured against the floor in one run, as one table.
 * Ends by itself: every load is a fixed count, every wait has a limit, every process ends with this one.
 * Exit code 0 when all bars are met, 1 when one is missed or could not be measured, 2 for wrong arguments.
 */
import { writeFileSync } from "node:fs";
import { measureCommits } from "./goals/commits.ts";
import { measureIdle } from "./goals/idle.ts";
import { measureSessions } from "./goals/sessions.ts";
import { measureStartup } from "./goals/startup.ts";
import { measureTurns } from "./goals/turns.ts";
import { goals, readOptions, usage, type Goal, type Options } from "./options.ts";
import { renderTable } from "./report.ts";
import { Rig } from "./rig.ts";
import { subjects } from "./subjects.ts";
import type { Row } from "./verdict.ts";

interface Group {
  readonly goals: readonly Goal[];
  readonly measure: (rig: Rig, options: Options, say: (text: string) => void) => Promise<readonly Row[]>;
}

/** Quiet measurements first: the loads leave a warm machine and a full page cache behind. */
const groups: readonly Group[] = [
  { goals: ["G14"], measure: measureStartup },
  { goals: ["G15"], measure: measureIdle },
  { goals: ["G11"], measure: measureCommits },
  { goals: ["G6", "G7"], measure: measureSessions },
  { goals: ["G1", "G2", "G3", "G9", "G19"], measure: measureTurns },
];

async function bench(options: Options): Promise<readonly Row[]> {
  subjects[options.subject].prepare?.();
  await using rig = await Rig.start();
  const rows: Row[] = [];
  for (const group of groups) {
    const wanted = group.goals.filter((goal) => options.only.has(goal));
    if (wanted.length === 0) continue;
    const measured = await measure(group, rig, options);
    rows.push(...measured.filter((row) => wanted.some((goal) => goal === row.goal)));
  }
  return goals.flatMap((goal) => rows.filter((row) => row.goal === goal));
}

/** A gateway that fails one load still tells something about the others. */
async function measure(group: Group, rig: Rig, options: Options): Promise<readonly Row[]> {
  try {
    return await group.measure(rig, options, (text) => console.error(text));
  } catch (error) {
    const note = error instanceof Error ? error.message : String(error);
    return group.goals.map((goal) => ({
      goal,
      what: "not measured",
      unit: "",
      judged: "value",
      subject: Number.NaN,
      verdict: "unmeasurable",
      notes: [note],
    }));
  }
}

function parse(): Options | undefined {
  try {
    const options = readOptions(process.argv.slice(2));
    if (options === undefined) console.log(usage);
    return options;
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${usage}`);
    process.exitCode = 2;
    return undefined;
  }
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

const options = parse();
if (options !== undefined) {
  const rows = await bench(options);
  console.log(renderTable(rows));
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(rows, null, 2)}\n`);
  process.exitCode = rows.every((row) => row.verdict === "pass" || row.verdict === "skipped") ? 0 : 1;
}
