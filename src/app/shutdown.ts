/**
 * Stopping in two phases. Drain: new work is refused, what is open may finish, within the grace. Then the tree stops
 * in reverse order; runs that still worked stay as they are stored and go on at the next start.
 */
import { Cancelled } from "../kernel/scope.ts";
import type { DaemonParts } from "./daemon-parts.ts";

const graceMs = 30_000;

export class Shutdown {
  readonly #parts: DaemonParts;
  readonly #controller = new AbortController();
  readonly #stopping = new AbortController();
  readonly #graceOver = new AbortController();

  constructor(parts: DaemonParts) {
    this.#parts = parts;
  }

  /** Aborts when the tree has to stop. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Aborts when draining begins: what would keep the daemon open for ever should end. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Begins to drain; called again, skips the rest of the grace. */
  begin(): void {
    if (this.#stopping.signal.aborted) return this.abort(new Cancelled("shutdown"));
    this.#stopping.abort(new Cancelled("shutdown"));
    const grace = this.#parts.clock.setTimer(graceMs, () => this.#graceOver.abort());
    const failed = (thrown: unknown): void =>
      this.#parts.obs.events.defect({ where: "shutdown", error: String(thrown) });
    this.#drain()
      .catch(failed)
      .finally(() => {
        grace.cancel();
        this.abort(new Cancelled("shutdown"));
      });
  }

  /** Stops the tree now. */
  abort(reason: Cancelled): void {
    this.#graceOver.abort();
    this.#controller.abort(reason);
  }

  async #drain(): Promise<void> {
    const { sessions, http, socket } = this.#parts;
    const doors = [http.peek(), socket.peek()].flatMap((gateway) =>
      gateway === null ? [] : [gateway.drain()],
    );
    await sessions.peek()?.drain(this.#graceOver.signal);
    await orAbort(Promise.all(doors), this.#graceOver.signal);
  }
}

/** Waits for `work`, but not longer than until `signal` aborts. */
async function orAbort(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve(), { once: true });
  work.then(
    () => resolve(),
    () => resolve(),
  );
  await promise;
}
