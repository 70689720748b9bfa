/** A log file of bounded size: when it is full it becomes `FILE.1`, the former `FILE.1` becomes `FILE.2`, and so on. */
import { closeSync, constants, fchmodSync, mkdirSync, openSync, readSync, statSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { BeamclawError } from "../domain/error-catalogue.ts";
import type { LogSink } from "./log.ts";

export interface LogFileOptions {
  readonly path: string;
  /** Bytes of one file; only a single longer line goes beyond. */
  readonly maxBytes: number;
  /** Files in all, the current one included; 1 or more. */
  readonly files: number;
}

/** Characters that wait for the disk; beyond it lines are lost, and counted. */
const maxWaiting = 1_048_576;
/** Bytes of one write. */
const maxWrite = 65_536;
/** Never through a symbolic link, which somebody else could have put there. */
const flags = constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY | constants.O_NOFOLLOW;

/**
 * Lines are written in the background, as many at once as have come since the last write. A full disk costs
 * lines and nothing else; the next line that can be written is preceded by their number.
 */
export class LogFile implements LogSink {
  readonly #options: LogFileOptions;
  #waiting: string[] = [];
  #waitingLength = 0;
  #lost = 0;
  #file: FileHandle | null = null;
  #size = 0;
  /** The background work; null while there is none. */
  #writing: Promise<void> | null = null;
  #isClosed = false;

  /**
   * Creates the file, readable by its owner only.
   * @throws {BeamclawError} `configuration`, where the file cannot be written, or others could put theirs in its place.
   */
  constructor(options: LogFileOptions) {
    this.#options = options;
    try {
      prepare(options.path);
    } catch (cause) {
      if (cause instanceof BeamclawError) throw cause;
      const param = "obs.logFile";
      throw new BeamclawError("configuration", `cannot write the log ${options.path}`, { cause, param });
    }
  }

  write(line: string): void {
    if (this.#isClosed) return;
    if (this.#waitingLength + line.length > maxWaiting) {
      this.#lost += 1;
      return;
    }
    this.#waiting.push(line);
    this.#waitingLength += line.length;
    this.#writing ??= this.#drain();
  }

  /** Resolves when the lines so far are written, or lost. */
  async flush(): Promise<void> {
    await this.#writing;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.flush();
    await this.#release();
  }

  /** Never rejects: what cannot be written is lost, and counted. */
  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#take();
      try {
        await this.#append(lines.join(""));
      } catch {
        this.#lost += lines.length;
        await this.#release();
      }
    }
    this.#writing = null;
  }

  /** The next lines to write together: at least one, no more than one write and one file can take. */
  #take(): string[] {
    const limit = Math.min(maxWrite, this.#options.maxBytes);
    let bytes = 0;
    const next = this.#waiting.findIndex((line, index) => {
      bytes += Buffer.byteLength(line);
      return bytes > limit && index > 0;
    });
    const lines = this.#waiting.splice(0, next < 0 ? this.#waiting.length : next);
    this.#waitingLength -= lines.reduce((sum, line) => sum + line.length, 0);
    return lines;
  }

  async #append(text: string): Promise<void> {
    const lost = this.#lost;
    const bytes = Buffer.from(
      lost === 0
        ? text
        : `${JSON.stringify({ level: "warn", event: "log_lines_lost", lines: lost })}\n${text}`,
    );
    await this.#acquire();
    if (this.#size > 0 && this.#size + bytes.length > this.#options.maxBytes) {
      await this.#rotate();
    }
    const file = await this.#acquire();
    await file.writeFile(bytes);
    this.#size += bytes.length;
    this.#lost -= lost;
  }

  async #acquire(): Promise<FileHandle> {
    if (this.#file !== null) return this.#file;
    const file = await open(this.#options.path, flags, 0o600);
    this.#size = (await file.stat()).size;
    this.#file = file;
    return file;
  }

  async #release(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    try {
      await file?.close();
    } catch {
      return; // nothing can be done about a file that does not even close
    }
  }

  async #rotate(): Promise<void> {
    const { path, files } = this.#options;
    await this.#release();
    if (files === 1) return rm(path);
    const nameOf = (n: number): string => (n === 0 ? path : `${path}.${n}`);
    for (let n = files - 2; n >= 0; n -= 1) {
      try {
        await rename(nameOf(n), nameOf(n + 1));
      } catch (thrown) {
        if (n === 0 || !isMissing(thrown)) throw thrown;
      }
    }
  }
}

function prepare(path: string): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if ((statSync(folder).mode & 0o002) !== 0) {
    throw new BeamclawError(
      "configuration",
      `${folder} is writable by everyone; choose a folder of your own`,
      {
        param: "obs.logFile",
      },
    );
  }
  const descriptor = openSync(path, flags, 0o600);
  try {
    assertLog(path);
    fchmodSync(descriptor, 0o600);
  } finally {
    closeSync(descriptor);
  }
}

/** A wrong path may name anything: only an empty file, or one that begins like our lines, is taken for a log. */
function assertLog(path: string): void {
  const { size } = statSync(path);
  if (size === 0 && statSync(path).isFile()) return;
  if (statSync(path).isFile() && readStart(path) === "{") return;
  throw new BeamclawError("configuration", `${path} is no log of beamclaw; it is left alone`, {
    param: "obs.logFile",
  });
}

function readStart(path: string): string {
  const descriptor = openSync(path, "r");
  try {
    const head = Buffer.alloc(1);
    readSync(descriptor, head, 0, 1, 0);
    return head.toString("latin1");
  } finally {
    closeSync(descriptor);
  }
}

const isMissing = (thrown: unknown): boolean =>
  thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT";
