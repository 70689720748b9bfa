/** The log: structured, buffered, scrubbed as a whole before it leaves. Writing to it neither throws nor waits. */
import { type Level, type Logger, pino } from "pino";
import { LineRing } from "./line-ring.ts";
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
  /** Takes one line with its line break; neither throws nor waits. Ignored after `close`. */
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

/** Characters of a line; a longer one is reduced to what identifies it. */
const maxLine = 16_384;

/** The log of a process, and its recent lines. */
export class ProcessLog implements Log {
  readonly #options: LogOptions;
  readonly #pino: Logger;
  readonly #ring = new LineRing();
  #scrubber: Scrubber;

  constructor(options: LogOptions) {
    this.#options = options;
    this.#scrubber = options.scrubber;
    this.#pino = pino(
      {
        level: options.level,
        base: null,
        messageKey: "event",
        timestamp: () => `,"time":"${new Date(options.now()).toISOString()}"`,
        formatters: { level: (label) => ({ level: label }), log: rounded },
      },
      { write: (line) => this.#write(line) },
    );
  }

  /** After a reload, so that secrets that are new are known here too. */
  setScrubber(scrubber: Scrubber): void {
    this.#scrubber = scrubber;
  }

  setLevel(level: Level): void {
    this.#pino.level = level;
  }

  debug(event: string, fields: LogFields = {}): void {
    this.#log("debug", event, fields);
  }

  info(event: string, fields: LogFields = {}): void {
    this.#log("info", event, fields);
  }

  warn(event: string, fields: LogFields = {}): void {
    this.#log("warn", event, fields);
  }

  error(event: string, fields: LogFields = {}): void {
    this.#log("error", event, fields);
  }

  /** The last lines, oldest first, without line breaks. */
  recent(limit: number): readonly string[] {
    return this.#ring.last(limit);
  }

  /** Calls `listener` with every new line until the returned function is called, or `listener` throws. */
  follow(listener: (line: string) => void): () => void {
    return this.#ring.follow(listener);
  }

  /** Writes what is buffered. Later lines are ignored. */
  close(): Promise<void> {
    this.#ring.close();
    return this.#options.sink.close();
  }

  #log(level: "debug" | "info" | "warn" | "error", event: string, fields: LogFields): void {
    try {
      this.#pino[level](fields, event);
    } catch (thrown) {
      // Fields that cannot be told (a throwing getter), or a sink that broke its promise.
      this.#ring.add(
        JSON.stringify({ level: "error", event: "log_line_lost", of: event, why: String(thrown) }),
      );
    }
  }

  #write(raw: string): void {
    const { sink } = this.#options;
    const scrubber = this.#scrubber;
    // The quick look costs next to nothing; only a line that holds a secret is taken apart.
    const isClean = scrubber.scrubText(raw) === raw;
    const scrubbed = isClean ? raw.trimEnd() : scrubber.scrubJsonText(raw.trimEnd());
    const line = scrubbed.length > maxLine ? shortened(scrubbed) : scrubbed;
    this.#ring.add(line);
    sink.write(`${line}\n`);
  }
}

/** Level, time, event and ids of a line that is too long to keep. */
function shortened(line: string): string {
  const fields: unknown = JSON.parse(line);
  const kept = Object.entries(Object(fields)).filter(
    ([, value]) => typeof value === "number" || (typeof value === "string" && value.length <= 200),
  );
  return JSON.stringify({ ...Object.fromEntries(kept.slice(0, 32)), shortened_from: line.length });
}

/**
 * Fractions to one decimal: every fraction in a line is a time in milliseconds, and nobody reads a log for less. Done
 * here because most lines are below the level and are never written.
 */
function rounded(fields: Record<string, unknown>): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    result[name] = typeof value === "number" ? Math.round(value * 10) / 10 : value;
  }
  return result;
}
