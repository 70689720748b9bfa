/** Cold start: from spawn to the first 200 of `/health`, against a script that does nothing (G14). */
import { spawn } from "node:child_process";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { Gateway } from "../gateway.ts";
import type { Options } from "../options.ts";
import type { Rig } from "../rig.ts";
import { fewestRounds, takeRound, undisturbed, type Round } from "../rounds.ts";
import { median, seededRandom, shuffled, spread } from "../statistics.ts";
import { quietFloor, subjects, type Subject } from "../subjects.ts";
import { judgeRounds, type Row } from "../verdict.ts";

const EMPTY = fileURLToPath(new URL("../floor/empty.mjs", import.meta.url));

interface Starts {
  readonly subject: number;
  readonly quiet: number;
  readonly empty: number;
}

export async function measureStartup(
  rig: Rig,
  options: Options,
  say: (text: string) => void,
): Promise<readonly Row[]> {
  const subject = subjects[options.subject];
  const home = rig.newDirectory(subject.name);
  const quietHome = rig.newDirectory("quiet");
  const random = seededRandom(options.size.spawns);
  say(`cold start: ${options.size.spawns} rounds`);
  const firstMs = await startMs(rig, subject, home); // creates its home: not what a restart costs
  const rounds: Round<Starts>[] = [];
  for (let i = 0; i < options.size.spawns; i += 1) {
    rounds.push(
      await takeRound(async () => {
        const times = new Map<string, number>();
        for (const name of shuffled(["subject", "quiet", "empty"] as const, random)) {
          if (name === "subject") times.set(name, await startMs(rig, subject, home));
          else if (name === "quiet") times.set(name, await startMs(rig, quietFloor, quietHome));
          else times.set(name, await emptyMs());
        }
        return {
          subject: times.get("subject") ?? NaN,
          quiet: times.get("quiet") ?? NaN,
          empty: times.get("empty") ?? NaN,
        };
      }),
    );
  }
  return [startRow(rounds, firstMs)];
}

function startRow(rounds: readonly Round<Starts>[], firstMs: number): Row {
  const kept = undisturbed(rounds);
  const all = (of: (starts: Starts) => number): number[] => kept.rounds.map(of);
  const least = (of: (starts: Starts) => number): number => Math.min(...all(of));
  const ratios = all(({ subject, empty }) => subject / empty);
  const bar = { atMost: 5 };
  return {
    goal: "G14",
    what: "cold start to healthy, against an empty script",
    unit: "ms",
    judged: "ratio",
    subject: median(all(({ subject }) => subject)),
    floor: median(all(({ empty }) => empty)),
    ratio: spread(ratios),
    bar,
    verdict: judgeRounds(ratios, bar, fewestRounds(rounds.length)),
    notes: [
      `${kept.rounds.length} spawns, ${kept.dropped} dropped; quickest ${least((s) => s.subject).toFixed(0)} ms ` +
        `against ${least((s) => s.empty).toFixed(0)} ms (${(least((s) => s.subject) / least((s) => s.empty)).toFixed(2)} x); ` +
        `first start on an empty home ${firstMs.toFixed(0)} ms`,
      `http + SQLite with all else imported later: ${median(all(({ quiet }) => quiet)).toFixed(0)} ms`,
    ],
  };
}

async function startMs(rig: Rig, subject: Subject, directory: string): Promise<number> {
  await using gateway = await Gateway.start(subject, { directory, upstream: rig.modelPort, pollMs: 1 });
  return gateway.healthyAfterMs;
}

/** Spawn to the byte that the script writes. */
function emptyMs(): Promise<number> {
  const began = performance.now();
  const child = spawn(process.execPath, [EMPTY], { stdio: ["ignore", "pipe", "ignore"], env: {} });
  return new Promise((resolve, reject) => {
    let ms = NaN;
    child.stdout.once("data", () => {
      ms = performance.now() - began;
    });
    child.once("close", () => resolve(ms)).once("error", reject);
  });
}
