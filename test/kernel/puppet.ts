import { AsyncLocalStorage } from "node:async_hooks";
import type { ManualClock } from "../../src/kernel/clock.ts";
import { toError } from "../../src/kernel/errors.ts";
import { Cancelled } from "../../src/kernel/scope.ts";
import type { Child } from "../../src/kernel/supervisor.ts";

export interface PuppetOptions {
  /** Milliseconds until the child is ready. */
  readonly startMs?: number;
  /** Milliseconds from the abort to the end; Infinity ignores the signal. */
  readonly stopMs?: number;
  /** Hears of everything as it happens; `life` counts from 1. */
  readonly watch?: (what: PuppetNews, id: string, life: number) => void;
}

export type PuppetNews = "start" | "ready" | "stop" | "end";

/** A child that lives until the test pulls a string. `journal` tells, over all puppets, what happened in order. */
export class Puppet {
  readonly id: string;
  startMs: number;
  stopMs: number;
  /** Lives begun so far. */
  lives = 0;
  /** Lives that run and have not been told to stop. */
  serving = 0;
  /** Rejects or resolves the present life. */
  #strings: PromiseWithResolvers<void> | undefined;
  /** One per life: runs a function in the asynchronous context of that life. */
  readonly #contexts: ((raise: () => void) => void)[] = [];
  readonly #clock: ManualClock;
  readonly #journal: string[];
  readonly #watch: PuppetOptions["watch"];

  constructor(id: string, clock: ManualClock, journal: string[], options: PuppetOptions = {}) {
    this.id = id;
    this.#clock = clock;
    this.#journal = journal;
    this.startMs = options.startMs ?? 0;
    this.stopMs = options.stopMs ?? 0;
    this.#watch = options.watch;
  }

  readonly run: Child = async ({ signal, ready }) => {
    const strings = Promise.withResolvers<void>();
    this.#strings = strings;
    this.#contexts.push(AsyncLocalStorage.snapshot());
    this.lives += 1;
    this.serving += 1;
    const life = this.lives;
    this.#tell("start", life);
    signal.addEventListener("abort", () => this.#onAbort(strings, life), { once: true });
    const announce = (): void => {
      this.#watch?.("ready", this.id, life);
      ready();
    };
    const timer = this.startMs === 0 ? announce() : this.#clock.setTimer(this.startMs, announce);
    try {
      await strings.promise;
    } finally {
      timer?.cancel();
      if (!signal.aborted) this.serving -= 1;
      this.#tell("end", life);
    }
  };

  crash(message = "boom"): void {
    this.#strings?.reject(new Error(message));
  }

  return(): void {
    this.#strings?.resolve();
  }

  /** Runs `raise` as if the child, in its `life`-th life (the present one unless told), had set a timer that fires now. */
  stray(raise: () => void, life = this.lives): void {
    this.#contexts[life - 1]?.(raise);
  }

  #tell(what: PuppetNews, life: number): void {
    this.#journal.push(`${what} ${this.id}`);
    this.#watch?.(what, this.id, life);
  }

  #onAbort(strings: PromiseWithResolvers<void>, life: number): void {
    this.serving -= 1;
    this.#tell("stop", life);
    if (this.stopMs === 0) strings.resolve();
    else if (this.stopMs !== Infinity) this.#clock.setTimer(this.stopMs, () => strings.resolve());
  }
}

export interface Launched {
  readonly signal: AbortSignal;
  readonly isReady: () => boolean;
  /** "running", "returned", or the error that the child ended with. */
  readonly outcome: () => "running" | "returned" | Error;
  stop(reason?: Error): void;
}

/** Runs a child as its parent would. */
export function launch(run: Child): Launched {
  const controller = new AbortController();
  let isReady = false;
  let outcome: "running" | "returned" | Error = "running";
  run({ signal: controller.signal, ready: () => (isReady = true) }).then(
    () => (outcome = "returned"),
    (thrown: unknown) => (outcome = toError(thrown)),
  );
  return {
    signal: controller.signal,
    isReady: () => isReady,
    outcome: () => outcome,
    stop: (reason = new Cancelled("shutdown")) => controller.abort(reason),
  };
}
