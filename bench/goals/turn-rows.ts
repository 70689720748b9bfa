/** From rounds of turns to lines of the table. Pure. */
import type { Reading } from "../gateway.ts";
import type { ModelStats } from "../mock-model.ts";
import type { Options } from "../options.ts";
import type { Outcome } from "../rig.ts";
import { fewestRounds, undisturbed, type Kept, type Round } from "../rounds.ts";
import { hasDelayedAckMode, median, medianInterval, quantile, seededRandom, spread } from "../statistics.ts";
import type { SubjectName } from "../subjects.ts";
import { judgeRounds, judgeTail, type Bar, type Row } from "../verdict.ts";

export const loadNames = ["serial", "burst", "paced"] as const;
export type LoadName = (typeof loadNames)[number];

/** One load of one round against one gateway. */
export interface Sample {
  readonly outcome: Outcome;
  readonly loop: Reading["loop"];
  readonly model: ModelStats;
}

/** One round: each load against each gateway, and the serial load straight at the model. */
export interface TurnRound {
  readonly direct: Outcome;
  readonly samples: Readonly<Record<LoadName, ReadonlyMap<SubjectName, Sample>>>;
}

/** A figure of one gateway in one round; NaN where the round says nothing about it. */
type Figure = (round: TurnRound, name: SubjectName) => number;

export function turnRows(rounds: readonly Round<TurnRound>[], options: Options): readonly Row[] {
  const kept = undisturbed(rounds);
  const minimum = fewestRounds(rounds.length);
  const context = { kept, minimum, subject: options.subject };
  return [
    ratioRow(context, {
      goal: "G1",
      what: "CPU per burst turn",
      unit: "ms",
      bar: { atMost: 1.6 },
      load: "burst",
      figure: (round, name) => ofBurst(round, name, ({ gatewayCpuMs, turns }) => gatewayCpuMs / turns),
    }),
    ratioRow(context, {
      goal: "G2",
      what: "added time to first token, p50 of serial turns",
      unit: "ms",
      bar: { atMost: 1.5 },
      load: "serial",
      figure: addedFirstToken,
    }),
    tailRow(context),
    ratioRow(context, {
      goal: "G9",
      what: "durable streamed turns/s, 64 callers",
      unit: "/s",
      bar: { atLeast: 0.7 },
      load: "burst",
      figure: (round, name) => ofBurst(round, name, ({ elapsedMs, turns }) => (turns / elapsedMs) * 1e3),
    }),
    loopRow(context),
  ];
}

interface Context {
  readonly kept: Kept<TurnRound>;
  readonly minimum: number;
  readonly subject: SubjectName;
}

interface RatioGoal {
  readonly goal: string;
  readonly what: string;
  readonly unit: string;
  readonly bar: Bar;
  readonly load: LoadName;
  readonly figure: Figure;
}

function ratioRow(context: Context, { figure, load, ...goal }: RatioGoal): Row {
  const { kept, minimum, subject } = context;
  const ratiosTo = (other: SubjectName): number[] =>
    kept.rounds
      .map((round) => figure(round, subject) / figure(round, other))
      .filter((ratio) => Number.isFinite(ratio));
  const typical = (name: SubjectName): number =>
    median(kept.rounds.map((round) => figure(round, name)).filter((value) => Number.isFinite(value)));
  const ratios = ratiosTo("floor");
  const interval = medianInterval(ratios, seededRandom(1));
  return {
    ...goal,
    judged: "ratio",
    subject: typical(subject),
    floor: typical("floor"),
    naive: typical("naive"),
    ratio: spread(ratios),
    verdict: judgeRounds(ratios, goal.bar, minimum),
    notes: [
      `${ratios.length} rounds, ${kept.dropped} dropped, calibration spread ${kept.disturbance.toFixed(2)}`,
      `95 % interval of the median ratio ${interval.low.toFixed(2)} to ${interval.high.toFixed(2)}; ` +
        `${median(ratiosTo("naive")).toFixed(2)} x naive`,
      ...historyNote(context, load),
      ...problems(context, load),
    ],
  };
}

function ofBurst(
  round: TurnRound,
  name: SubjectName,
  figure: (outcome: Sample["outcome"]) => number,
): number {
  const outcome = round.samples.burst.get(name)?.outcome;
  return outcome?.valid === true ? figure(outcome) : Number.NaN;
}

/** What the gateway adds to the time that the model itself takes. */
function addedFirstToken(round: TurnRound, name: SubjectName): number {
  const outcome = round.samples.serial.get(name)?.outcome;
  if (outcome?.valid !== true || !round.direct.valid) return Number.NaN;
  return median(outcome.firstTokenMs) - median(round.direct.firstTokenMs);
}

/** The tail of all serial turns together: no fixed sleep, no delayed ACK. */
function tailRow({ kept, minimum, subject }: Context): Row {
  const tail = (name: SubjectName): { times: number[]; ratio: number } => {
    const times = kept.rounds.flatMap((round) => round.samples.serial.get(name)?.outcome.firstTokenMs ?? []);
    return { times, ratio: quantile(times, 0.99) / median(times) };
  };
  const { times, ratio } = tail(subject);
  const bar = { atMost: 8 };
  const mode = hasDelayedAckMode(times);
  const floor = tail("floor").ratio;
  const measured = kept.rounds.length >= minimum ? judgeTail(ratio, floor, bar) : "unmeasurable";
  return {
    goal: "G3",
    what: "serial time to first token, p99 / p50; no mode near 40 ms",
    unit: "x",
    judged: "value",
    subject: ratio,
    floor,
    naive: tail("naive").ratio,
    bar,
    verdict: mode ? "miss" : measured,
    notes: [
      `${times.length} turns, p50 ${median(times).toFixed(2)} ms, p99 - p50 ` +
        `${(quantile(times, 0.99) - median(times)).toFixed(2)} ms, slowest ${Math.max(...times).toFixed(1)} ms; ` +
        (mode ? "they pile up near 40 ms" : "no mode near 40 ms"),
    ],
  };
}

/** The worst load decides. */
function loopRow({ kept, minimum, subject }: Context): Row {
  const p99 = (name: SubjectName, load: LoadName): number =>
    median(kept.rounds.map((round) => round.samples[load].get(name)?.loop.p99 ?? Number.NaN));
  const worst = (name: SubjectName): number => Math.max(...loadNames.map((load) => p99(name, load)));
  const longest = Math.max(
    ...kept.rounds.flatMap((round) =>
      loadNames.map((load) => round.samples[load].get(subject)?.loop.max ?? Number.NaN),
    ),
  );
  const bar = { atMost: 20 };
  return {
    goal: "G19",
    what: "event-loop delay p99, worst load",
    unit: "ms",
    judged: "value",
    subject: worst(subject),
    floor: worst("floor"),
    naive: worst("naive"),
    bar,
    verdict: kept.rounds.length >= minimum ? judgeTail(worst(subject), worst("floor"), bar) : "unmeasurable",
    notes: [
      `p99 by load: ${loadNames.map((load) => `${load} ${p99(subject, load).toFixed(1)} ms`).join(", ")}; ` +
        `longest ${longest.toFixed(0)} ms`,
    ],
  };
}

/** Gateways are comparable only while they send the model the same history. */
function historyNote({ kept, subject }: Context, load: LoadName): readonly string[] {
  const perCall = (name: SubjectName): string => {
    const stats = kept.rounds.flatMap((round) => round.samples[load].get(name)?.model ?? []);
    const sum = (of: (each: (typeof stats)[number]) => number): number =>
      stats.reduce((total, each) => total + of(each), 0);
    const messages = sum((each) => each.sampledMessages) / sum((each) => each.sampled);
    const kilobytes = sum((each) => each.bodyBytes) / sum((each) => each.requests) / 1024;
    return `${name} ${messages.toFixed(1)} messages, ${kilobytes.toFixed(1)} KiB`;
  };
  return [`a model call carries: ${perCall("floor")}; ${perCall(subject)}`];
}

function problems({ kept }: Context, load: LoadName): readonly string[] {
  const found = kept.rounds.flatMap((round) =>
    [...round.samples[load]].filter(([, sample]) => !sample.outcome.valid),
  );
  const [first] = found;
  return first === undefined
    ? []
    : [`${found.length} points are void, the first of ${first[0]}: ${first[1].outcome.problem}`];
}
