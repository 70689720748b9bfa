/** What the daemon holds and does when nobody talks to it (G15). */
import { setTimeout as sleep } from "node:timers/promises";
import { Gateway } from "../gateway.ts";
import type { Options } from "../options.ts";
import { wakeUps } from "../proc.ts";
import type { Rig } from "../rig.ts";
import { median, spread } from "../statistics.ts";
import { quietFloor, subjects, type Subject } from "../subjects.ts";
import { judgeRounds, type Row } from "../verdict.ts";

/** Start-up work ends, then the watch begins. */
const SETTLE_MS = 3_000;
const WATCH_MS = 5_000;

interface Idle {
  readonly rssBytes: number;
  readonly cpuShare: number;
  readonly wakeUpsPerSecond: number;
}

/** Memory is no matter of a busy neighbour, so no pair is ever dropped. */
interface Pair {
  readonly subject: Idle;
  readonly floor: Idle;
}

export async function measureIdle(
  rig: Rig,
  options: Options,
  say: (text: string) => void,
): Promise<readonly Row[]> {
  const pairs: Pair[] = [];
  for (let i = 0; i < options.size.idleRounds; i += 1) {
    say(`idle: round ${i + 1}`);
    pairs.push({
      subject: await watch(rig, subjects[options.subject]),
      floor: await watch(rig, quietFloor),
    });
  }
  return [idleRow(pairs)];
}

async function watch(rig: Rig, subject: Subject): Promise<Idle> {
  const place = { directory: rig.newDirectory(subject.name), upstream: rig.modelPort };
  await using gateway = await Gateway.start(subject, place);
  await sleep(SETTLE_MS);
  const [cpu, wakes] = [gateway.cpuSeconds(), wakeUps(gateway.pid)];
  await sleep(WATCH_MS);
  return {
    rssBytes: gateway.rssBytes(),
    cpuShare: (gateway.cpuSeconds() - cpu) / (WATCH_MS / 1e3),
    wakeUpsPerSecond: (wakeUps(gateway.pid) - wakes) / (WATCH_MS / 1e3),
  };
}

function idleRow(pairs: readonly Pair[]): Row {
  const ratios = pairs.map(({ subject, floor }) => subject.rssBytes / floor.rssBytes);
  const bar = { atMost: 1.4 };
  const of = (figure: (pair: Pair) => number): number => median(pairs.map(figure));
  return {
    goal: "G15",
    what: "idle RSS, against http + SQLite",
    unit: "MiB",
    judged: "ratio",
    subject: of(({ subject }) => subject.rssBytes) / 2 ** 20,
    floor: of(({ floor }) => floor.rssBytes) / 2 ** 20,
    ratio: spread(ratios),
    bar,
    verdict: judgeRounds(ratios, bar, pairs.length),
    notes: [
      `idle CPU ${(of(({ subject }) => subject.cpuShare) * 100).toFixed(1)} % of a core, ` +
        `${of(({ subject }) => subject.wakeUpsPerSecond).toFixed(1)} wake-ups/s`,
    ],
  };
}
