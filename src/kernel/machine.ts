/**
 * State machines as data. A table says for every state and every event what happens, and the compiler refuses
 * a table with a missing cell. The engine is pure: it computes the next state and returns the effects, which
 * the caller performs.
 */

/** `S` and `E` are closed unions; `F` is what a transition asks the outside world to do. */
export type Transitions<S extends { name: string }, E extends { type: string }, F> = {
  readonly [N in S["name"]]: { readonly [T in E["type"]]: Cell<S, E, F, N, T> };
};

/**
 * A function computes the transition. `"ignore"`: late news that no longer matters here. `"postpone"`: keep
 * the event until the state's name changes. `"illegal"`: cannot happen; if it does, somebody has a defect.
 */
export type Cell<S extends { name: string }, E extends { type: string }, F, N, T> =
  | "ignore"
  | "postpone"
  | "illegal"
  | ((state: Extract<S, { name: N }>, event: Extract<E, { type: T }>) => Transition<S, F>);

export interface Transition<S, F> {
  readonly state: S;
  readonly effects: readonly F[];
}

/** An event arrived in a state whose table says that it cannot. The machine has not moved. */
export class IllegalTransition extends Error {
  override readonly name = "IllegalTransition";
  readonly state: string;
  readonly event: string;

  constructor(state: string, event: string) {
    super(`event ${event} is illegal in state ${state}`);
    this.state = state;
    this.event = event;
  }
}

/** More events wait for another state than the machine was built to hold. The machine has not moved. */
export class TooManyPostponed extends Error {
  override readonly name = "TooManyPostponed";

  constructor(state: string, event: string, limit: number) {
    super(`event ${event} in state ${state} would be postponed event ${limit + 1} of at most ${limit}`);
  }
}

export class Machine<S extends { name: string }, E extends { type: string }, F> {
  readonly #transitions: Transitions<S, E, F>;
  readonly #maxPostponed: number;
  #state: S;
  /** In order of arrival. */
  #postponed: readonly E[] = [];

  constructor(transitions: Transitions<S, E, F>, initial: NoInfer<S>, maxPostponed = 100) {
    this.#transitions = transitions;
    this.#state = initial;
    this.#maxPostponed = maxPostponed;
  }

  get state(): S {
    return this.#state;
  }

  /** Events that wait for the state's name to change. */
  get postponed(): readonly E[] {
    return this.#postponed;
  }

  /**
   * Moves the machine by one event, and by every postponed event that has become due: after a change of the
   * state's name they are replayed in order of arrival, before anything newer. Returns the effects in order.
   *
   * Throws `IllegalTransition` or `TooManyPostponed`, or what a transition throws; then nothing has changed.
   */
  send(event: E): readonly F[] {
    let state = this.#state;
    let waiting = [event];
    let postponed = this.#postponed;
    const effects: F[] = [];
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const cell = this.#cell(state, next);
      if (cell === "ignore") continue;
      if (cell === "illegal") throw new IllegalTransition(state.name, next.type);
      if (cell === "postpone") {
        if (postponed.length >= this.#maxPostponed)
          throw new TooManyPostponed(state.name, next.type, this.#maxPostponed);
        postponed = [...postponed, next];
        continue;
      }
      const moved = cell(state, next);
      effects.push(...moved.effects);
      if (moved.state.name !== state.name) {
        // What is postponed arrived before whatever still waits: a replay puts it back in front.
        waiting = [...postponed, ...waiting];
        postponed = [];
      }
      state = moved.state;
    }
    this.#state = state;
    this.#postponed = postponed;
    return effects;
  }

  /** The one cast: a cell is looked up by the names of the very state and event that it is applied to. */
  #cell(state: S, event: E): LookedUp<S, E, F> {
    const table = this.#transitions as Readonly<Record<string, Readonly<Record<string, LookedUp<S, E, F>>>>>;
    return table[state.name]?.[event.type] ?? "illegal";
  }
}

type LookedUp<S, E, F> = "ignore" | "postpone" | "illegal" | ((state: S, event: E) => Transition<S, F>);
