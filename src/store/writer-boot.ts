import { Worker } from "node:worker_threads";
import { BeamclawError } from "../domain/error-catalogue.ts";
import type { FromWriter, ToWriter, WriterSetup } from "./writer-protocol.ts";

/**
 * A writer thread that starts, and opens the database when it is told which. That takes as long as loading the rest
 * of the daemon, so the daemon begins it first and does the other meanwhile; `WriterThread.take` goes on from here.
 */
export class WriterBoot implements AsyncDisposable {
  readonly worker: Worker;
  /** Resolves when the database is open; rejects with `store_unavailable` and the like where it cannot be. */
  readonly ready: Promise<void>;
  #taken = false;

  constructor(workerUrl: URL) {
    // The thread needs none of the daemon's environment, which holds secrets.
    this.worker = new Worker(workerUrl, { name: "store-writer", env: {} });
    this.ready = untilReady(this.worker);
    this.ready.catch(() => undefined); // whoever takes the thread is told; nobody may be there yet
  }

  /** To be called once. */
  open(setup: WriterSetup): this {
    const message: ToWriter = { kind: "open", ...setup };
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    this.worker.postMessage(message);
    return this;
  }

  /** From now on the caller ends the thread. */
  take(): Worker {
    this.#taken = true;
    return this.worker;
  }

  /** Ends the thread unless somebody has taken it. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#taken) await this.worker.terminate();
  }
}

/** Resolves at the thread's first word, or rejects with why it has none. Leaves no listener behind. */
function untilReady(worker: Worker): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | null): void => {
      worker.off("message", onMessage).off("error", done).off("exit", onExit);
      if (error === null) resolve();
      else reject(error instanceof BeamclawError ? error : unavailable(error.message));
    };
    const onMessage = (message: FromWriter): void =>
      done(message.kind === "unusable" ? new BeamclawError(message.error.code, message.error.message) : null);
    const onExit = (): void => done(unavailable("the store's writer has ended"));
    worker.on("message", onMessage).on("error", done).on("exit", onExit);
  });
}

const unavailable = (text: string): BeamclawError => new BeamclawError("store_unavailable", text);
