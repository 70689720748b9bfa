/**
 * A supervisor is a child whose work is its children, so trees nest. It starts them from left to right, each
 * when the one before is ready, and stops them from right to left, each within its deadline.
 *
 * Everything that happens to a child arrives as a message in one inbox, a failed start and the request to stop
 * included, and no message is ever waited for in the middle of another. After each message `#step` compares
 * what is with what should be and does the one next thing: that is all there is to starting, restarting and
 * stopping. Restarts are counted; past the limit the supervisor stops its children and crashes upwards.
 */
import { type Child, type ChildContext, type Ending, Life } from "./child.ts";
import type { Clock } from "./clock.ts";
import { toError, Unreachable } from "./errors.ts";
import { type ExitReason, type ExitReport, summarize } from "./exit-report.ts";
import { Mailbox } from "./mailbox.ts";
import { RestartBudget } from "./restart-budget.ts";
import { Cancelled, onAbort } from "./scope.ts";

export type { Child, ChildContext } from "./child.ts";
export type { ExitReport } from "./exit-report.ts";

export interface ChildSpec {
  /** Unique among its siblings. */
  readonly id: string;
  readonly run: Child;
  /** `permanent` (unless told): always restarted; `transient`: after a crash only; `temporary`: never. */
  readonly restart?: "permanent" | "transient" | "temporary";
  /**
   * How long the child may take to stop before it is abandoned, in milliseconds; 5,000 unless told. Infinity
   * suits a supervisor: its children have deadlines of their own.
   */
  readonly shutdownMs?: number;
}

export interface SupervisorSpec {
  readonly id: string;
  /** In start order: a child may rely on those to its left. */
  readonly children: readonly ChildSpec[];
  /**
   * Who is restarted with a child: nobody (`one_for_one`, unless told), those to its right, which may rely on
   * it (`rest_for_one`), or everybody (`one_for_all`).
   */
  readonly strategy?: "one_for_one" | "rest_for_one" | "one_for_all";
  /** Restarts within `periodMs` (30,000 unless told) before giving up; 5 unless told. */
  readonly intensity?: number;
  readonly periodMs?: number;
  readonly clock: Clock;
  /** Hears of every exit that nobody asked for. If it throws, the supervisor stops its children and crashes. */
  readonly report: (report: ExitReport) => void;
}

/** The children crash faster than restarting them can help. The parent decides what happens next. */
export class RestartLimitError extends Error {
  override readonly name = "RestartLimitError";
  readonly code = "restart_limit";
  readonly supervisor: string;
  /** The child whose exit was one too many. */
  readonly child: string;

  constructor(supervisor: string, child: string, cause: unknown) {
    super(`supervisor ${supervisor} gave up: ${child} exited once too often`, { cause });
    this.supervisor = supervisor;
    this.child = child;
  }
}

/** Throws a RangeError when two children share an id or the restart limits make no sense. */
export function supervise(spec: SupervisorSpec): Child {
  const ids = new Set(spec.children.map((child) => child.id));
  if (ids.size < spec.children.length)
    throw new RangeError(`supervisor ${spec.id} has two children of one id`);
  newBudget(spec);
  return (context) => new Supervisor(spec, context).run();
}

/** A child's place. It outlives the child's lives, and is given up when there will be no further one. */
interface Seat {
  readonly spec: ChildSpec;
  /** Absent between two lives. */
  life?: Life;
  /** The present life is to be stopped, so that its exit will be no news. */
  condemned: boolean;
}

type Message =
  | { readonly kind: "start" }
  | { readonly kind: "stop" }
  | { readonly kind: "ready" }
  | { readonly kind: "ended"; readonly life: Life; readonly ending: Ending };

class Supervisor {
  readonly #spec: SupervisorSpec;
  readonly #context: ChildContext;
  readonly #seats: Seat[];
  readonly #inbox: Mailbox<Message>;
  readonly #budget: RestartBudget;
  #isStopping = false;
  #stopReason: unknown;
  #failure: Error | undefined;

  constructor(spec: SupervisorSpec, context: ChildContext) {
    this.#spec = spec;
    this.#context = context;
    this.#seats = spec.children.map((child) => ({ spec: child, condemned: false }));
    // Never full: a life sends two messages, and a seat takes no further life before both are read.
    this.#inbox = new Mailbox(2 * spec.children.length + 2);
    this.#budget = newBudget(spec);
  }

  async run(): Promise<void> {
    using _ = onAbort(this.#context.signal, () => this.#inbox.push({ kind: "stop" }));
    this.#inbox.push({ kind: "start" });
    for await (const message of this.#inbox) {
      if (message.kind === "stop") this.#stop(this.#context.signal.reason);
      if (message.kind === "ended") this.#onEnded(message.life, message.ending);
      this.#step();
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** The one next thing: stop the rightmost condemned child, else be done, else start the leftmost missing one. */
  #step(): void {
    const leaving = this.#seats.findLast((seat) => seat.condemned);
    if (leaving !== undefined) {
      leaving.life?.stop(this.#stopReason);
      return;
    }
    if (this.#isStopping) {
      this.#inbox.close();
      return;
    }
    const coming = this.#seats.find((seat) => seat.life?.isReady !== true);
    if (coming === undefined) this.#context.ready();
    else if (coming.life === undefined) this.#start(coming);
  }

  #start(seat: Seat): void {
    const { id, run, shutdownMs = 5_000 } = seat.spec;
    const options = { name: `${this.#spec.id}/${id}`, clock: this.#spec.clock, shutdownMs };
    seat.life = new Life(run, options, {
      ready: () => this.#inbox.push({ kind: "ready" }),
      ended: (life, ending) => this.#inbox.push({ kind: "ended", life, ending }),
      late: (error) => this.#spec.report(this.#describe(id, "late", error, false)),
    });
  }

  #onEnded(life: Life, ending: Ending): void {
    const seat = this.#seats.find((candidate) => candidate.life === life);
    if (seat === undefined) return;
    delete seat.life;
    if (seat.condemned) this.#onStopped(seat, life, ending);
    else if (isFinal(seat.spec, ending)) this.#giveUp(seat, ending);
    else this.#restart(seat, ending);
  }

  /**
   * A condemned child ended. In a restart it comes back in its turn, unless it is temporary, or had finished by
   * itself before it could be told to stop.
   */
  #onStopped(seat: Seat, life: Life, ending: Ending): void {
    seat.condemned = false;
    const wasLast = life.isStopping ? seat.spec.restart === "temporary" : isFinal(seat.spec, ending);
    const comesBack = !this.#isStopping && !wasLast;
    if (!comesBack) this.#remove(seat);
    if (ending.kind !== "returned") this.#report(seat, ending, comesBack);
  }

  #giveUp(seat: Seat, ending: Ending): void {
    this.#remove(seat);
    if (ending.kind !== "returned") this.#report(seat, ending, false);
  }

  #restart(seat: Seat, ending: Ending): void {
    const willRestart = this.#budget.spend(this.#spec.clock.monotonic());
    this.#report(seat, ending, willRestart);
    if (!willRestart) this.#fail(new RestartLimitError(this.#spec.id, seat.spec.id, errorOf(ending)));
    if (this.#isStopping) return;
    this.#condemn(this.#dependants(seat), new Cancelled("shutdown", `restarting with ${seat.spec.id}`));
    if (this.#strategy === "one_for_one") this.#start(seat); // siblings owe each other no order once they run
  }

  get #strategy(): "one_for_one" | "rest_for_one" | "one_for_all" {
    return this.#spec.strategy ?? "one_for_one";
  }

  #dependants(seat: Seat): readonly Seat[] {
    const strategy = this.#strategy;
    switch (strategy) {
      case "one_for_one":
        return [];
      case "rest_for_one":
        return this.#seats.slice(this.#seats.indexOf(seat) + 1);
      case "one_for_all":
        return this.#seats;
      default:
        throw new Unreachable(strategy);
    }
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#stop(new Cancelled("shutdown", error.message));
  }

  #stop(reason: unknown): void {
    this.#isStopping = true;
    this.#condemn(this.#seats, reason);
  }

  #condemn(seats: readonly Seat[], reason: unknown): void {
    this.#stopReason = reason;
    for (const seat of seats) seat.condemned = seat.life !== undefined;
  }

  #remove(seat: Seat): void {
    this.#seats.splice(this.#seats.indexOf(seat), 1);
  }

  #report(seat: Seat, ending: Ending, willRestart: boolean): void {
    const reason = ending.kind === "returned" ? "exited" : ending.kind;
    try {
      this.#spec.report(this.#describe(seat.spec.id, reason, errorOf(ending), willRestart));
    } catch (thrown) {
      this.#fail(toError(thrown));
    }
  }

  #describe(child: string, reason: ExitReason, error: Error | undefined, willRestart: boolean): ExitReport {
    return {
      supervisor: this.#spec.id,
      child,
      reason,
      ...(error === undefined ? {} : { error: summarize(error) }),
      restarts: this.#budget.spent,
      willRestart,
    };
  }
}

/** Whether this was the child's last life. */
function isFinal(spec: ChildSpec, ending: Ending): boolean {
  const restart = spec.restart ?? "permanent";
  return restart === "temporary" || (restart === "transient" && ending.kind === "returned");
}

function errorOf(ending: Ending): Error | undefined {
  return ending.kind === "returned" ? undefined : ending.error;
}

function newBudget(spec: SupervisorSpec): RestartBudget {
  return new RestartBudget(spec.intensity ?? 5, spec.periodMs ?? 30_000);
}
