/**
 * Attributes errors that escape every `catch` (a throw in a timer, an emitter's listener, a rejection that
 * nobody handles) to whoever was running when they were raised. The runtime carries the owner along every
 * asynchronous hop, and hands it to the process's last-resort handlers.
 *
 * A callback runs in the context of whoever calls it: a listener that throws crashes the emitter's owner.
 */
import { AsyncLocalStorage } from "node:async_hooks";

/** Whoever answers for what is raised in its context. */
export interface Owner {
  readonly name: string;
  /** Is called with every stray error of this owner, also after the owner has ended. Must not throw. */
  crash(error: unknown): void;
}

export type StrayOrigin = "uncaughtException" | "unhandledRejection";

/** What `process` offers, as far as it is needed here. */
export interface ErrorSource {
  on(event: StrayOrigin, listener: (thrown: unknown) => void): unknown;
  off(event: StrayOrigin, listener: (thrown: unknown) => void): unknown;
}

/** Holds no state of its own: the value belongs to each asynchronous context. */
const owners = new AsyncLocalStorage<Owner>();

/** Runs `work`, and everything that it sets off, in the name of `owner`. Nests: the innermost owner counts. */
export function runAs<T>(owner: Owner, work: () => T): T {
  return owners.run(owner, work);
}

/**
 * From now until disposal no stray error ends the process by itself. One that has an owner crashes the owner;
 * one that has none, or whose owner cannot even take the news, goes to `onUnowned`, which should end the
 * process in an orderly way.
 */
export function installStrayErrorHandler(
  source: ErrorSource,
  onUnowned: (thrown: unknown, origin: StrayOrigin) => void,
): Disposable {
  const listen = (origin: StrayOrigin): (() => void) => {
    const listener = (thrown: unknown): void => {
      const owner = owners.getStore();
      if (owner === undefined) {
        onUnowned(thrown, origin);
        return;
      }
      try {
        owner.crash(thrown);
      } catch (failure) {
        onUnowned(
          new AggregateError([thrown, failure], `${owner.name} could not take a stray error`),
          origin,
        );
      }
    };
    source.on(origin, listener);
    return () => source.off(origin, listener);
  };
  const removers = [listen("uncaughtException"), listen("unhandledRejection")];
  return {
    [Symbol.dispose]() {
      for (const remove of removers) remove();
    },
  };
}
