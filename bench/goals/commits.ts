/** Syncs per turn, counted by strace: the same number on a quick machine and on a slow one (G11). */
import { spawnSync } from "node:child_process";
import { Gateway } from "../gateway.ts";
import type { Options } from "../options.ts";
import type { Rig } from "../rig.ts";
import { subjects, type SubjectName } from "../subjects.ts";
import { judgeValue, type Row } from "../verdict.ts";

const MANY = 64;
const WARM_UP_TURNS = 64;

/** Syncs per turn of one gateway. */
interface Counts {
  readonly alone: number;
  readonly together: number;
}

export async function measureCommits(
  rig: Rig,
  options: Options,
  say: (text: string) => void,
): Promise<readonly Row[]> {
  const { subject, size } = options;
  if (spawnSync("strace", ["--version"]).status !== 0) return rows(subject, new Map());
  const counts = new Map<SubjectName, Counts>();
  for (const name of new Set<SubjectName>(["floor", "naive", subject])) {
    say(`syncs per turn: ${name}`);
    counts.set(name, await count(rig, name, size.countedTurns));
  }
  return rows(subject, counts);
}

async function count(rig: Rig, name: SubjectName, turns: number): Promise<Counts> {
  const place = { directory: rig.newDirectory(name), upstream: rig.modelPort, countSyncs: true };
  await using gateway = await Gateway.start(subjects[name], place);
  rig.setPace("mock-50x0");
  const perTurn = async (callers: number, total: number): Promise<number> => {
    const before = await gateway.syncs();
    const outcome = await rig.load(gateway, { callers, turns: total, prefix: "counted", sessions: 4 * MANY });
    if (outcome.turns < total) throw new Error(`${name}: ${outcome.problem}`);
    return ((await gateway.syncs()) - before) / total;
  };
  await perTurn(MANY, WARM_UP_TURNS);
  return { alone: await perTurn(1, turns), together: await perTurn(MANY, turns * 8) };
}

function rows(subject: SubjectName, counts: ReadonlyMap<SubjectName, Counts>): readonly Row[] {
  const row = (what: string, atMost: number, of: (counts: Counts) => number): Row => {
    const value = (name: SubjectName): number => {
      const found = counts.get(name);
      return found === undefined ? Number.NaN : of(found);
    };
    return {
      goal: "G11",
      what,
      unit: "",
      judged: "value",
      subject: value(subject),
      floor: value("floor"),
      naive: value("naive"),
      bar: { atMost },
      verdict: counts.size === 0 ? "skipped" : judgeValue(value(subject), { atMost }),
      notes: counts.size === 0 ? ["strace is not installed"] : [],
    };
  };
  return [
    row("fdatasync per turn, 1 caller", 2.05, ({ alone }) => alone),
    row(`fdatasync per turn, ${MANY} callers`, 0.5, ({ together }) => together),
  ];
}
