/** A log file of bounded size: when it is full it becomes `FILE.1`, the former `FILE.1` becomes `FILE.2`, and so on. */
import { chmodSync, existsSync, mkdirSync, renameSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { destination } from "pino";
import type { LogSink } from "./log.ts";

export interface LogFileOptions {
  readonly path: string;
  /** Bytes of one file. */
  readonly maxBytes: number;
  /** Files in all, the current one included; 1 or more. */
  readonly files: number;
}

export class LogFile implements LogSink {
  readonly #options: LogFileOptions;
  readonly #out: ReturnType<typeof destination>;
  #bytes: number;

  /** Creates the file, readable by its owner only. Throws where that is not possible. */
  constructor(options: LogFileOptions) {
    this.#options = options;
    mkdirSync(dirname(options.path), { recursive: true, mode: 0o700 });
    this.#bytes = statSync(options.path, { throwIfNoEntry: false })?.size ?? 0;
    if (this.#bytes > 0) chmodSync(options.path, 0o600);
    // Asynchronous, so that a slow disk never holds up a run; a full disk costs log lines and nothing else.
    this.#out = destination({ dest: options.path, mode: 0o600, sync: false, append: true });
    this.#out.on("error", () => undefined);
  }

  write(line: string): void {
    this.#bytes += line.length;
    this.#out.write(line);
    if (this.#bytes >= this.#options.maxBytes) this.#rotate();
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#out.once("close", () => resolve());
      this.#out.once("error", () => resolve());
      this.#out.end();
    });
  }

  #rotate(): void {
    const { path, files } = this.#options;
    this.#bytes = 0;
    try {
      this.#out.flushSync();
      for (let n = files - 1; n >= 1; n -= 1) {
        const from = n === 1 ? path : `${path}.${n - 1}`;
        if (existsSync(from)) renameSync(from, `${path}.${n}`);
      }
      this.#out.reopen(path);
    } catch {
      return; // the file goes on growing until the disk lets us rename; a log must not stop the daemon
    }
  }
}
