/**
 * A supervisor whose children come and go at run time, each under a key, and the registry of those keys. Its
 * children are temporary: it never restarts one, so no restart budget is shared between keys. What shall
 * survive a crash is started as a `supervise(…)` of its own.
 */
import { type Child, type Ending, Life } from "./child.ts";
import type { Clock } from "./clock.ts";
import { type ExitReason, type ExitReport, summarize } from "./exit-report.ts";
import { onAbort } from "./scope.ts";

export interface DynamicSupervisorSpec {
  readonly id: string;
  /** Further children are refused. */
  readonly maxChildren: number;
  readonly clock: Clock;
  /** Hears of every exit that nobody asked for, as in `SupervisorSpec`. Must not throw. */
  readonly report: (report: ExitReport) => void;
}

/** What `start` puts under a key: how others reach the child, and the child. */
export interface DynamicChild<V> {
  readonly value: V;
  readonly run: Child;
  /** As in `ChildSpec`. */
  readonly shutdownMs?: number;
}

export type Started<V> =
  | { readonly kind: "started"; readonly value: V }
  /** Somebody was faster; both have the same child. */
  | { readonly kind: "existing"; readonly value: V }
  /** `leaving`: the key's child was asked to stop, try again after `gone(key)`. `closed`: not in service. */
  | { readonly kind: "refused"; readonly reason: "full" | "leaving" | "closed" };

interface Entry<V> {
  readonly value: V;
  readonly life: Life;
  /** Resolves when the entry has left; made when the first one waits. */
  departure?: PromiseWithResolvers<void>;
}

export class DynamicSupervisor<V> {
  readonly #spec: DynamicSupervisorSpec;
  /** In start order. */
  readonly #entries = new Map<string, Entry<V>>();
  #isOpen = false;
  #emptied: (() => void) | undefined;

  constructor(spec: DynamicSupervisorSpec) {
    this.#spec = spec;
  }

  /**
   * The supervisor itself, as a child of another one (`shutdownMs: Infinity` suits it). In service until its
   * signal aborts; then its children are asked to stop in reverse start order and waited for together, so that
   * stopping takes as long as the slowest child's deadline and not as all of them in a row.
   */
  readonly run: Child = async ({ signal, ready }) => {
    this.#isOpen = true;
    ready();
    await aborted(signal);
    this.#isOpen = false;
    for (const { life } of [...this.#entries.values()].toReversed()) life.stop(signal.reason);
    if (this.#entries.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#emptied = resolve;
    });
  };

  /** Children that have not ended, those that are stopping included. */
  get size(): number {
    return this.#entries.size;
  }

  /** Undefined when there is no child under the key, or when it is on its way out. */
  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined || entry.life.isStopping ? undefined : entry.value;
  }

  /** Starts a child unless the key has one; `make` is called only then. Never waits, so callers cannot race. */
  start(key: string, make: () => DynamicChild<V>): Started<V> {
    const present = this.#entries.get(key);
    if (!this.#isOpen) return { kind: "refused", reason: "closed" };
    if (present?.life.isStopping === true) return { kind: "refused", reason: "leaving" };
    if (present !== undefined) return { kind: "existing", value: present.value };
    if (this.#entries.size >= this.#spec.maxChildren) return { kind: "refused", reason: "full" };
    const child = make();
    this.#entries.set(key, { value: child.value, life: this.#bringToLife(key, child) });
    return { kind: "started", value: child.value };
  }

  /** Asks the key's child to stop and resolves when it has left, at the latest after its deadline. */
  stop(key: string, reason: Error): Promise<void> {
    this.#entries.get(key)?.life.stop(reason);
    return this.gone(key);
  }

  /** Resolves as soon as the key is free. */
  gone(key: string): Promise<void> {
    const entry = this.#entries.get(key);
    if (entry === undefined) return Promise.resolve();
    entry.departure ??= Promise.withResolvers<void>();
    return entry.departure.promise;
  }

  #bringToLife(key: string, { run, shutdownMs = 5_000 }: DynamicChild<V>): Life {
    const options = { name: `${this.#spec.id}/${key}`, clock: this.#spec.clock, shutdownMs };
    return new Life(run, options, {
      ready: () => undefined,
      ended: (_, ending) => this.#onEnded(key, ending),
      late: (error) => this.#report(key, "late", error),
    });
  }

  #onEnded(key: string, ending: Ending): void {
    const entry = this.#entries.get(key);
    this.#entries.delete(key);
    entry?.departure?.resolve();
    if (this.#entries.size === 0) this.#emptied?.();
    if (ending.kind !== "returned") this.#report(key, ending.kind, ending.error);
  }

  #report(child: string, reason: ExitReason, error: Error | undefined): void {
    const details = error === undefined ? {} : { error: summarize(error) };
    this.#spec.report({
      supervisor: this.#spec.id,
      child,
      reason,
      ...details,
      restarts: 0,
      willRestart: false,
    });
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  using _ = onAbort(signal, resolve);
  await promise;
}
