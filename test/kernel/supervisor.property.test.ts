import * as fc from "fast-check";
import { expect, test } from "vitest";
import { ManualClock } from "../../src/kernel/clock.ts";
import {
  type ChildSpec,
  type ExitReport,
  RestartLimitError,
  supervise,
  type SupervisorSpec,
} from "../../src/kernel/supervisor.ts";
import { launch, Puppet, type PuppetNews } from "./puppet.ts";

type Strategy = NonNullable<SupervisorSpec["strategy"]>;

const IDS = ["a", "b", "c", "d"] as const;
const PERIOD_MS = 100;
const SHUTDOWN_MS = 60;

const strategies = fc.constantFrom("one_for_one" as const, "rest_for_one" as const, "one_for_all" as const);
const restarts = fc.constantFrom("permanent" as const, "transient" as const, "temporary" as const);
const targets = fc.nat({ max: IDS.length - 1 });
const pulls = fc.record({ target: targets, how: fc.constantFrom("crash" as const, "return" as const) });

/** What OTP's rules say must be true once everything has come to rest. */
class Model {
  readonly #strategy: Strategy;
  readonly #intensity: number;
  #seats: { id: string; restart: NonNullable<ChildSpec["restart"]> }[];
  readonly lives = new Map<string, number>();
  #restartTimes: number[] = [];
  hasFailed = false;

  constructor(children: readonly ChildSpec[], strategy: Strategy, intensity: number) {
    this.#strategy = strategy;
    this.#intensity = intensity;
    this.#seats = children.map(({ id, restart = "permanent" }) => ({ id, restart }));
    for (const { id } of children) this.lives.set(id, 1);
  }

  serves(id: string): boolean {
    return !this.hasFailed && this.#seats.some((seat) => seat.id === id);
  }

  exit(id: string, how: "crash" | "return", now: number): void {
    const index = this.#seats.findIndex((seat) => seat.id === id);
    const seat = this.#seats[index];
    if (seat === undefined || this.hasFailed) return;
    if (seat.restart === "temporary" || (seat.restart === "transient" && how === "return")) {
      this.#seats.splice(index, 1);
      return;
    }
    this.#restartTimes = this.#restartTimes.filter((time) => now - time < PERIOD_MS);
    if (this.#restartTimes.length >= this.#intensity) {
      this.hasFailed = true;
      return;
    }
    this.#restartTimes.push(now);
    const left = { one_for_one: index, rest_for_one: index, one_for_all: 0 }[this.#strategy];
    const right = this.#strategy === "one_for_one" ? index + 1 : this.#seats.length;
    for (const other of this.#seats.slice(left, right))
      if (other.restart !== "temporary") this.lives.set(other.id, (this.lives.get(other.id) ?? 0) + 1);
    this.#seats = this.#seats.filter(
      (other, at) => at < left || at >= right || other.restart !== "temporary",
    );
  }
}

test("any sequence of exits has the outcome that the rules give it", async () => {
  const setting = fc.record({
    strategy: strategies,
    intensity: fc.nat({ max: 3 }),
    types: fc.tuple(restarts, restarts, restarts, restarts),
    exits: fc.array(fc.record({ pull: pulls, pauseMs: fc.nat({ max: 60 }) }), { maxLength: 12 }),
  });
  await fc.assert(
    fc.asyncProperty(setting, async ({ strategy, intensity, types, exits }) => {
      const clock = new ManualClock();
      const puppets = IDS.map((id) => new Puppet(id, clock, []));
      const children = puppets.map(({ id, run }, at) => ({ id, run, restart: types[at] ?? "permanent" }));
      const model = new Model(children, strategy, intensity);
      const limits = { strategy, intensity, periodMs: PERIOD_MS };
      const top = launch(supervise({ id: "top", children, clock, ...limits, report: () => {} }));
      for (const { pull, pauseMs } of exits) {
        await clock.advance(pauseMs);
        const puppet = puppets[pull.target];
        puppet?.[pull.how]();
        model.exit(IDS[pull.target] ?? "", pull.how, clock.monotonic());
        await clock.advance(0);
        expect(puppets.map(({ id, lives, serving }) => ({ id, lives, serving }))).toEqual(
          IDS.map((id) => ({ id, lives: model.lives.get(id), serving: model.serves(id) ? 1 : 0 })),
        );
        expect(top.outcome() instanceof RestartLimitError).toBe(model.hasFailed);
      }
    }),
    { numRuns: 150 },
  );
});

const commands = fc.oneof(
  fc.record({ kind: fc.constant("pull" as const), pull: pulls }),
  fc.record({
    kind: fc.constant("temper" as const),
    target: targets,
    startMs: fc.constantFrom(0, 7, 30),
    stopMs: fc.constantFrom(0, 5, 30, Infinity),
  }),
  fc.record({ kind: fc.constant("pause" as const), ms: fc.nat({ max: 40 }) }),
);

/** Watches every start and stop as it happens, and takes down what must never be. */
class Watch {
  readonly violations: string[] = [];
  readonly reports: ExitReport[] = [];
  readonly #clock: ManualClock;
  readonly #strategy: Strategy;
  /** The life of each child that the supervisor waits for. */
  readonly #lives = new Map<string, number>();
  readonly #starting = new Set<string>();
  readonly #seen = new Set<string>();
  #restartTimes: number[] = [];

  constructor(clock: ManualClock, strategy: Strategy) {
    this.#clock = clock;
    this.#strategy = strategy;
  }

  note(what: PuppetNews, id: string, life: number): void {
    const toTheRight = [...this.#lives.keys()].filter((other) => other > id);
    if (what === "start") this.#onStart(id, life, toTheRight);
    if (what === "ready" && this.#lives.get(id) === life) this.#starting.delete(id);
    if (what === "stop")
      this.#require(toTheRight.length === 0, `${id} was stopped under ${toTheRight.join()}`);
    if (what === "end" && this.#lives.get(id) === life) this.#gone(id);
  }

  #onStart(id: string, life: number, toTheRight: readonly string[]): void {
    this.#require(!this.#lives.has(id), `two lives of ${id}`);
    // Without dependencies only the very first start of a child keeps the order.
    if (this.#strategy !== "one_for_one" || !this.#seen.has(id)) {
      this.#require(toTheRight.length === 0, `${id} came up under ${toTheRight.join()}`);
      const unready = [...this.#starting].filter((other) => other < id);
      this.#require(unready.length === 0, `${id} came up before ${unready.join()} was ready`);
    }
    this.#seen.add(id);
    this.#starting.add(id);
    this.#lives.set(id, life);
  }

  #gone(id: string): void {
    this.#lives.delete(id);
    this.#starting.delete(id);
  }

  report(report: ExitReport, intensity: number): void {
    this.reports.push(report);
    if (report.reason === "abandoned") this.#gone(report.child);
    this.#require(report.restarts <= intensity, `${report.restarts} restarts of ${intensity}`);
    // Under the other strategies a child that comes back with its sibling costs the budget nothing.
    if (!report.willRestart || this.#strategy !== "one_for_one") return;
    const now = this.#clock.monotonic();
    this.#restartTimes = [...this.#restartTimes.filter((time) => now - time < PERIOD_MS), now];
    this.#require(
      this.#restartTimes.length <= intensity,
      `restart ${this.#restartTimes.length} of ${intensity}`,
    );
  }

  get waitedFor(): readonly string[] {
    return [...this.#lives.keys()];
  }

  #require(holds: boolean, violation: string): void {
    if (!holds) this.violations.push(violation);
  }
}

test("whatever happens while whatever else happens, order and budget hold and a stop comes to an end", async () => {
  const setting = fc.record({
    strategy: strategies,
    intensity: fc.nat({ max: 4 }),
    types: fc.tuple(restarts, restarts, restarts, restarts),
    script: fc.array(commands, { maxLength: 40 }),
  });
  await fc.assert(
    fc.asyncProperty(setting, async ({ strategy, intensity, types, script }) => {
      const clock = new ManualClock();
      const watch = new Watch(clock, strategy);
      const options = { watch: watch.note.bind(watch) };
      const puppets = IDS.map((id) => new Puppet(id, clock, [], options));
      const children = puppets.map(({ id, run }, at) => ({
        id,
        run,
        restart: types[at] ?? "permanent",
        shutdownMs: SHUTDOWN_MS,
      }));
      const limits = { strategy, intensity, periodMs: PERIOD_MS };
      const report = (r: ExitReport): void => watch.report(r, intensity);
      const top = launch(supervise({ id: "top", children, clock, ...limits, report }));
      for (const command of script) {
        if (command.kind === "pause") await clock.advance(command.ms);
        else if (command.kind === "pull") puppets[command.pull.target]?.[command.pull.how]();
        else
          Object.assign(puppets[command.target] ?? {}, { startMs: command.startMs, stopMs: command.stopMs });
      }
      top.stop();
      await clock.advance(IDS.length * SHUTDOWN_MS);
      expect(watch.violations).toEqual([]);
      expect(watch.waitedFor).toEqual([]);
      const gaveUp = watch.reports.some((r) => !r.willRestart && r.reason !== "late");
      expect(top.outcome()).toSatisfy((o) => o === "returned" || (gaveUp && o instanceof RestartLimitError));
      await clock.advance(1_000);
      expect(clock.pending).toBe(0);
    }),
    { numRuns: 200 },
  );
});
