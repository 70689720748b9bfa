/** The log: structured, buffered, scrubbed as a whole before it leaves. Writing to it neither throws nor waits. */
import { type Level, type Logger, pino } from "pino";
import type { Scrubber } from "./scrubber.ts";

export type LogFields = object;

export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}

/** Where lines go. */
export interface LogSink {
  /** Takes one line with its line break; neither throws nor waits. */
  write(line: string): void;
  /** Resolves when everything is written, or cannot be. */
  close(): Promise<void>;
}

export interface LogOptions {
  readonly level: Level;
  readonly scrubber: Scrubber;
  readonly sink: LogSink;
  /** Milliseconds since the epoch, for the `time` of each line. */
  readonly now: () => number;
}

/** Lines that `beamclaw logs` can still show. */
const keptLines = 1000;

/** The log of a process, and its recent lines. */
export class ProcessLog implements Log {
  readonly #options: LogOptions;
  readonly #pino: Logger;
  readonly #recent: string[] = [];
  readonly #followers = new Set<(line: string) => void>();

  constructor(options: LogOptions) {
    this.#options = options;
    this.#pino = pino(
      {
        level: options.level,
        base: null,
        messageKey: "event",
        timestamp: () => `,"time":"${new Date(options.now()).toISOString()}"`,
        formatters: { level: (label) => ({ level: label }) },
      },
      { write: (line) => this.#write(line) },
    );
  }

  setLevel(level: Level): void {
    this.#pino.level = level;
  }

  debug(event: string, fields: LogFields = {}): void {
    this.#pino.debug(fields, event);
  }

  info(event: string, fields: LogFields = {}): void {
    this.#pino.info(fields, event);
  }

  warn(event: string, fields: LogFields = {}): void {
    this.#pino.warn(fields, event);
  }

  error(event: string, fields: LogFields = {}): void {
    this.#pino.error(fields, event);
  }

  /** The last lines, oldest first, without line breaks. */
  recent(limit: number): readonly string[] {
    return limit <= 0 ? [] : this.#recent.slice(-limit);
  }

  /** Calls `listener` with every new line until the returned function is called. */
  follow(listener: (line: string) => void): () => void {
    this.#followers.add(listener);
    return () => this.#followers.delete(listener);
  }

  close(): Promise<void> {
    this.#followers.clear();
    return this.#options.sink.close();
  }

  #write(raw: string): void {
    const { scrubber, sink } = this.#options;
    // The quick look costs next to nothing; only a line that holds a secret is taken apart.
    const line = scrubber.scrubText(raw) === raw ? raw : `${scrubber.scrubJsonText(raw.trimEnd())}\n`;
    sink.write(line);
    const bare = line.trimEnd();
    this.#recent.push(bare);
    if (this.#recent.length > keptLines) this.#recent.shift();
    for (const listener of this.#followers) listener(bare);
  }
}
