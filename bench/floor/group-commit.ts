/** Durable appends from the floor's main thread, through its one writer thread. */
import { Worker } from "node:worker_threads";

/** One row on its way to the disk. */
export type Row = readonly [session: string, seq: number, json: string];

/**
 * Hands rows to the writer thread. Whatever arrives while one transaction is being written becomes the next one:
 * a lone caller waits for one fdatasync, many callers share one.
 */
export class GroupCommit {
  readonly #worker: Worker;
  #rows: Row[] = [];
  #waiting: (() => void)[] = [];
  #written: (() => void)[] | undefined;
  #armed = false;

  constructor(file: string) {
    this.#worker = new Worker(new URL("writer.ts", import.meta.url), { workerData: { file } });
    this.#worker.on("message", () => {
      const written = this.#written ?? [];
      this.#written = undefined;
      for (const resolve of written) resolve();
      this.#flush();
    });
  }

  /** Resolves when the rows are on disk. */
  append(rows: readonly Row[]): Promise<void> {
    this.#rows.push(...rows);
    if (!this.#armed) {
      this.#armed = true;
      setImmediate(() => {
        this.#armed = false;
        this.#flush();
      });
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #flush(): void {
    if (this.#written !== undefined || this.#rows.length === 0) return;
    this.#written = this.#waiting;
    this.#waiting = [];
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    this.#worker.postMessage(this.#rows);
    this.#rows = [];
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}
