import type { Event } from "../domain/event.ts";
import { toError } from "../kernel/errors.ts";

type Listener = (events: readonly Event[]) => void;

/** Tells committed events to whoever listens, in commit order. */
export class EventFeed {
  readonly #listeners = new Set<Listener>();
  readonly #onError: (error: Error) => void;

  constructor(onError: (error: Error) => void) {
    this.#onError = onError;
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** A listener that throws hurts neither the commit, which is done, nor the other listeners. */
  publish(events: readonly Event[]): void {
    for (const listener of this.#listeners) {
      try {
        listener(events);
      } catch (error) {
        this.#onError(toError(error));
      }
    }
  }
}
