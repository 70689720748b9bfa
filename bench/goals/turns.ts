/** The timed loads: serial, burst and paced turns against every gateway in turn, round after round (G1, G2, G3, G9, G19). */
import { Gateway } from "../gateway.ts";
import type { Options, Size } from "../options.ts";
import type { Plan, Rig } from "../rig.ts";
import { takeRound, type Round } from "../rounds.ts";
import { seededRandom, shuffled } from "../statistics.ts";
import { subjects, type SubjectName } from "../subjects.ts";
import type { Row } from "../verdict.ts";
import { turnRows, type Sample, type TurnRound } from "./turn-rows.ts";

/** User messages that open a session; with the answer to them its history is 50 messages. */
const OPENING = 49;
const BURST_CALLERS = 64;
const PACED_CALLERS = 200;
const SEED_CALLERS = 16;
/** Two windows this close mean that the gateway is warm. */
const WARM = 0.05;
const WARM_UP_WINDOWS = 5;

export async function measureTurns(
  rig: Rig,
  options: Options,
  say: (text: string) => void,
): Promise<readonly Row[]> {
  await using started = new AsyncDisposableStack();
  const gateways = new Map<SubjectName, Gateway>();
  for (const name of new Set<SubjectName>(["floor", "naive", options.subject])) {
    const directory = rig.newDirectory(name);
    const place = { directory, upstream: rig.modelPort, probe: "loop" } as const;
    gateways.set(name, started.use(await Gateway.start(subjects[name], place)));
  }
  for (const [name, gateway] of gateways)
    say(`warming up ${name}: ${await warmUp(rig, gateway, options.size)}`);
  const rounds: Round<TurnRound>[] = [];
  const random = seededRandom(options.rounds);
  const takeRounds = async (count: number): Promise<readonly Row[]> => {
    for (let i = 0; i < count; i += 1) {
      say(`turns: round ${rounds.length + 1}`);
      const prefix = `round${rounds.length}`;
      rounds.push(await takeRound(() => visitAll(rig, gateways, options.size, prefix, random)));
    }
    return turnRows(rounds, options);
  };
  const rows = await takeRounds(options.rounds);
  if (!rows.some((row) => row.verdict === "wide")) return rows;
  say("turns: the quartiles are too wide for a verdict, as many rounds again");
  return await takeRounds(options.rounds); // before the gateways are stopped
}

/** Bursts until two in a row are equally quick, or enough is enough. Says how it went. */
async function warmUp(rig: Rig, gateway: Gateway, size: Size): Promise<string> {
  const plan = { callers: BURST_CALLERS, turns: size.warmUpTurns, prefix: "warm", sessions: size.sessions };
  let last = await turnsPerSecond(rig, gateway, plan);
  for (let window = 2; window <= WARM_UP_WINDOWS; window += 1) {
    const rate = await turnsPerSecond(rig, gateway, plan);
    const settled = Math.abs(rate / last - 1) < WARM;
    last = rate;
    if (settled) break;
  }
  return `${Math.round(last)} turns/s`;
}

async function turnsPerSecond(rig: Rig, gateway: Gateway, plan: Plan): Promise<number> {
  const outcome = await rig.load(gateway, plan);
  if (outcome.turns < plan.turns) throw new Error(`${gateway.subject.name}: ${outcome.problem}`);
  return (outcome.turns / outcome.elapsedMs) * 1e3;
}

type Gateways = ReadonlyMap<SubjectName, Gateway>;

async function visitAll(
  rig: Rig,
  gateways: Gateways,
  size: Size,
  prefix: string,
  random: () => number,
): Promise<TurnRound> {
  const { sessions } = size;
  rig.setPace("mock-50x0");
  for (const gateway of shuffled([...gateways.values()], random)) {
    await rig.load(gateway, { callers: SEED_CALLERS, turns: sessions, prefix, sessions, messages: OPENING });
  }
  const order = (): (readonly [SubjectName, Gateway])[] => shuffled([...gateways], random);
  const serialPlan = { callers: 1, turns: size.serialTurns, prefix, sessions };
  const direct = await rig.loadModel({ ...serialPlan, turns: Math.ceil(size.serialTurns / 4) });
  const serial = await visit(rig, order(), serialPlan);
  const burst = await visit(rig, order(), {
    callers: BURST_CALLERS,
    turns: size.burstTurns,
    prefix,
    sessions,
  });
  rig.setPace("mock-50x50");
  const pacedPlan = {
    callers: Math.min(PACED_CALLERS, size.pacedTurns),
    turns: size.pacedTurns,
    prefix,
    sessions,
  };
  const paced = await visit(rig, order(), pacedPlan);
  return { direct, samples: { serial, burst, paced } };
}

async function visit(
  rig: Rig,
  gateways: readonly (readonly [SubjectName, Gateway])[],
  plan: Plan,
): Promise<ReadonlyMap<SubjectName, Sample>> {
  const samples = new Map<SubjectName, Sample>();
  for (const [name, gateway] of gateways) {
    await gateway.read();
    await rig.takeModelStats();
    const outcome = await rig.load(gateway, plan);
    samples.set(name, { outcome, loop: (await gateway.read()).loop, model: await rig.takeModelStats() });
  }
  return samples;
}
