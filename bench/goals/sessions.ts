/** What a session costs while nobody talks in it: resident, passivated, and at the next start (G6, G7). */
import { setTimeout as sleep } from "node:timers/promises";
import { Gateway, type Reading } from "../gateway.ts";
import type { Goal, Options, Size } from "../options.ts";
import type { Rig } from "../rig.ts";
import { slope, type Point } from "../statistics.ts";
import { subjects, type SubjectName } from "../subjects.ts";
import { judgeValue, type Row } from "../verdict.ts";

const KIB = 1024;
/** The slope is between the readings that follow a warm-up, so what is paid once does not count. */
const WARM_UP_STEPS = 4;
const STEPS = 3;
const CALLERS = 16;
interface Growth {
  readonly heap: number;
  readonly rss: number;
}

export async function measureSessions(
  rig: Rig,
  options: Options,
  say: (text: string) => void,
): Promise<readonly Row[]> {
  const { subject, size, only } = options;
  rig.setPace("mock-1x0");
  const measured: Row[] = [];
  const directory = rig.newDirectory(subject);
  if (only.has("G6")) {
    say("sessions: resident");
    const resident = await growth(rig, subject, directory, size, "resident");
    const floor = await growth(rig, "floor", rig.newDirectory("floor"), size, "resident");
    measured.push(
      row("G6", "heap per resident idle session", "B", resident.heap, KIB, floor.heap),
      row("G6", "RSS per resident idle session", "B", resident.rss, KIB, floor.rss),
    );
  }
  if (only.has("G7")) {
    say("sessions: passivated");
    const passivated = await growth(rig, subject, directory, size, "passivated");
    const empty = await atStart(rig, subject, rig.newDirectory(subject));
    const full = await atStart(rig, subject, directory);
    measured.push(
      row("G7", "heap per passivated session", "B", passivated.heap, NOTHING),
      row(
        "G7",
        "heap at start, with sessions on disk less without",
        "KiB",
        (full.heapBytes - empty.heapBytes) / KIB,
        4 * KIB,
      ),
    );
  }
  return measured;
}

/** "None" as far as it can be seen: less than an entry in a map would take. Bytes a session. */
const NOTHING = 64;

/** Bytes that one more idle session takes. */
async function growth(
  rig: Rig,
  name: SubjectName,
  directory: string,
  { residentSessions: sessions, restMs }: Size,
  kept: "resident" | "passivated",
): Promise<Growth> {
  const idleSeconds = kept === "passivated" ? 1 : 3600;
  const place = { directory, upstream: rig.modelPort, idleSeconds, probe: "heap" } as const;
  await using gateway = await Gateway.start(subjects[name], place);
  const heap: Point[] = [];
  const rss: Point[] = [];
  for (let step = 0; step < WARM_UP_STEPS + STEPS; step += 1) {
    const prefix = `${kept}${step}`;
    const outcome = await rig.load(gateway, { callers: CALLERS, turns: sessions, prefix, sessions });
    if (outcome.turns < sessions) throw new Error(`${name}: ${outcome.problem}`);
    if (step < WARM_UP_STEPS) continue; // page caches fill, code is compiled, the allocator finds its size
    await sleep(restMs);
    const reading = await gateway.read();
    heap.push({ x: step * sessions, y: reading.heapBytes });
    rss.push({ x: step * sessions, y: reading.rssBytes });
  }
  return { heap: slope(heap), rss: slope(rss) };
}

async function atStart(rig: Rig, name: SubjectName, directory: string): Promise<Reading> {
  const place = { directory, upstream: rig.modelPort, probe: "heap" } as const;
  await using gateway = await Gateway.start(subjects[name], place);
  await sleep(1_000);
  return await gateway.read(); // before the gateway is stopped
}

function row(goal: Goal, what: string, unit: string, value: number, atMost: number, floor?: number): Row {
  const bar = { atMost };
  return {
    goal,
    what,
    unit,
    judged: "value",
    subject: value,
    ...(floor !== undefined && { floor }),
    bar,
    verdict: judgeValue(value, bar),
    notes: [],
  };
}
