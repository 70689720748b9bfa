import type { Clock, Timer } from "./clock.ts";
import { toError } from "./errors.ts";
import { isCancellation } from "./scope.ts";
import { runAs, type Owner } from "./stray-errors.ts";

/**
 * A child is an async function, and its promise is its lifetime: returning is a normal exit, rejecting is a
 * crash. It builds its state each time it is called; after a restart only the store remembers.
 */
export type Child = (context: ChildContext) => Promise<void>;

export interface ChildContext {
  /** Aborts when the child shall stop. The child cleans up and returns, or rejects with the signal's reason. */
  readonly signal: AbortSignal;
  /** Says that the child is in service; the next sibling starts only then. More than one call changes nothing. */
  ready(this: void): void;
}

/** How a life ended, as seen by its supervisor. */
export type Ending =
  /** It returned, whether it was asked to or not. */
  | { readonly kind: "returned" }
  | { readonly kind: "crashed"; readonly error: Error }
  /** It ignored its signal past the deadline. `error` is the stray error that made it stop, where one did. */
  | { readonly kind: "abandoned"; readonly error?: Error };

/** What a life tells its supervisor. `ready` comes at most once, then `ended` exactly once, then any `late`. */
export interface LifeListener {
  ready(life: Life): void;
  ended(life: Life, ending: Ending): void;
  /** The end of an abandoned life (`error` absent: it returned), or a stray error after the first one. */
  late(error: Error | undefined): void;
}

export interface LifeOptions {
  /** Names the child in attributions, for example `root/gateway`. */
  readonly name: string;
  readonly clock: Clock;
  /** From the abort to being abandoned, in milliseconds; Infinity waits for ever. */
  readonly shutdownMs: number;
}

/** One life of a child: from the call of its function until the promise settles or is given up on. */
export class Life {
  readonly #options: LifeOptions;
  readonly #listener: LifeListener;
  readonly #controller = new AbortController();
  readonly #owner: Owner;
  #isReady = false;
  #hasEnded = false;
  #stray: Error | undefined;
  #deadline: Timer | undefined;

  constructor(run: Child, options: LifeOptions, listener: LifeListener) {
    this.#options = options;
    this.#listener = listener;
    this.#owner = { name: options.name, crash: (thrown) => this.#crash(toError(thrown)) };
    void this.#live(run);
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** Whether the child was asked to stop, by its supervisor or by a stray error. */
  get isStopping(): boolean {
    return this.#controller.signal.aborted;
  }

  /** Asks the child to stop and starts its deadline. Later calls change nothing. */
  stop(reason: unknown): void {
    if (this.#hasEnded || this.#controller.signal.aborted) return;
    const { clock, shutdownMs } = this.#options;
    if (shutdownMs !== Infinity) this.#deadline = clock.setTimer(shutdownMs, () => this.#abandon());
    // In the child's name, because the abort listeners that run now are the child's code.
    runAs(this.#owner, () => this.#controller.abort(reason));
  }

  async #live(run: Child): Promise<void> {
    const context = { signal: this.#controller.signal, ready: () => this.#announce() };
    try {
      // Not at once: whoever makes a life has it in hand before any of the child's code runs. And in a promise
      // job a throw before the child's first `await` is a rejection like any other.
      await runAs(this.#owner, () => Promise.resolve().then(() => this.#begin(run, context)));
    } catch (thrown) {
      this.#settle(isCancellation(thrown, context.signal) ? undefined : toError(thrown));
      return;
    }
    this.#settle(undefined);
  }

  async #begin(run: Child, context: ChildContext): Promise<void> {
    if (!context.signal.aborted) await run(context);
  }

  #announce(): void {
    if (this.#isReady || this.#hasEnded) return;
    this.#isReady = true;
    this.#listener.ready(this);
  }

  /** A child that failed behind its own back cannot be trusted to go on: it is stopped, and has crashed. */
  #crash(error: Error): void {
    if (this.#hasEnded || this.#stray !== undefined) {
      this.#listener.late(error);
      return;
    }
    this.#stray = error;
    this.stop(error);
  }

  #abandon(): void {
    this.#end({ kind: "abandoned", ...(this.#stray === undefined ? {} : { error: this.#stray }) });
  }

  #settle(thrown: Error | undefined): void {
    if (this.#hasEnded) {
      this.#listener.late(thrown);
      return;
    }
    const error = this.#stray ?? thrown;
    this.#end(error === undefined ? { kind: "returned" } : { kind: "crashed", error });
  }

  #end(ending: Ending): void {
    this.#hasEnded = true;
    this.#deadline?.cancel();
    this.#listener.ended(this, ending);
  }
}
