/** The command line of `npm run bench`, and how much work each mode does. */
import { parseArgs } from "node:util";
import { subjectNames, type SubjectName } from "./subjects.ts";

/** The goals that can be measured, in the order of the table. */
export const goals = ["G1", "G2", "G3", "G6", "G7", "G9", "G11", "G14", "G15", "G19"] as const;
export type Goal = (typeof goals)[number];

export interface Options {
  readonly only: ReadonlySet<Goal>;
  readonly rounds: number;
  readonly size: Size;
  readonly subject: SubjectName;
  readonly json: string | undefined;
}

/** Counts, never durations: the same work for every gateway. */
export interface Size {
  readonly sessions: number;
  readonly serialTurns: number;
  readonly burstTurns: number;
  readonly pacedTurns: number;
  readonly warmUpTurns: number;
  readonly countedTurns: number;
  readonly residentSessions: number;
  /**
   * Rest before memory is read: longer than a second's idleness and the sweep after it, and time for the allocator
   * to give back what the load left.
   */
  readonly restMs: number;
  readonly spawns: number;
  readonly idleRounds: number;
}

/** Seven rounds of 720 serial turns are the 5,000 that G3 asks for. */
const full: Size = {
  sessions: 256,
  serialTurns: 720,
  burstTurns: 2000,
  pacedTurns: 200,
  warmUpTurns: 1000,
  countedTurns: 200,
  residentSessions: 6000,
  restMs: 10_000,
  spawns: 20,
  idleRounds: 3,
};

const quick: Size = {
  sessions: 128,
  serialTurns: 100,
  burstTurns: 400,
  pacedTurns: 50,
  warmUpTurns: 300,
  countedTurns: 50,
  residentSessions: 1000,
  restMs: 3_000,
  spawns: 5,
  idleRounds: 1,
};

export const usage = `usage: npm run bench -- [options]
  --only G1,G9     only these goals (${goals.join(", ")})
  --rounds N       rounds of the timed goals (7; 3 with --quick)
  --quick          a tenth of the work: tells whether it runs, not how it does
  --subject NAME   what to measure against the floor (${subjectNames.join(", ")}; beamclaw)
  --json FILE      also write the table there
  --help`;

/** Throws an `Error` with one line for the user when an argument makes no sense; `undefined` asks for the usage. */
export function readOptions(argv: readonly string[]): Options | undefined {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      only: { type: "string" },
      rounds: { type: "string" },
      quick: { type: "boolean", default: false },
      subject: { type: "string", default: "beamclaw" },
      json: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return undefined;
  const rounds = Number(values.rounds ?? (values.quick ? 3 : 7));
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > 50) throw new Error("--rounds takes 1 to 50");
  const wanted = values.only?.split(",") ?? [...goals];
  return {
    only: new Set(wanted.map((name) => oneOf(goals, name, "--only"))),
    rounds,
    size: values.quick ? quick : full,
    subject: oneOf(subjectNames, values.subject, "--subject"),
    json: values.json,
  };
}

function oneOf<T extends string>(allowed: readonly T[], name: string, option: string): T {
  const found = allowed.find((each) => each === name);
  if (found === undefined) throw new Error(`${option}: ${name} is none of ${allowed.join(", ")}`);
  return found;
}
