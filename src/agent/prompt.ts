/**
 * The system prompt of an agent: its workspace files, each under its name. Stable files come first and the text
 * is the same byte for byte until a file changes, so that a provider's prompt cache keeps hitting.
 */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../kernel/clock.ts";

/** Files of a workspace in the order in which the model reads them. */
export const promptFiles = [
  "IDENTITY.md",
  "SOUL.md",
  "USER.md",
  "TOOLS.md",
  "AGENTS.md",
  "HEARTBEAT.md",
  "BOOTSTRAP.md",
  "MEMORY.md",
] as const;

/** A file longer than this many bytes is cut, with a note. */
const maxFileBytes = 20_480;

const fallback = "You are a helpful assistant. Answer briefly and say so when you do not know.";

interface CachedFile {
  readonly stamp: string;
  readonly text: string;
}

/** What nobody can edit in between, milliseconds. */
const lookEveryMs = 100;

/**
 * Reads a workspace's files again only when they have changed. It looks before every model call, synchronously: a
 * look at a local file takes a few microseconds, a trip through the thread pool a hundred.
 */
export class Prompt {
  readonly #folder: string;
  readonly #clock: Clock;
  #texts: readonly string[] = [];
  #lookedAt = -Infinity;
  readonly #files = new Map<string, CachedFile>();

  constructor(folder: string, clock: Clock) {
    this.#folder = folder;
    this.#clock = clock;
  }

  /** One system text per file that says something; a plain one where there is none. */
  texts(): readonly string[] {
    const now = this.#clock.monotonic();
    if (now - this.#lookedAt < lookEveryMs) return this.#texts;
    this.#lookedAt = now;
    this.#texts = this.#look();
    return this.#texts;
  }

  #look(): readonly string[] {
    const texts = promptFiles.map((name) => this.#read(name));
    const said = texts.filter((text) => text !== "");
    return said.length === 0 ? [fallback] : said;
  }

  #read(name: string): string {
    try {
      return this.#readFile(name);
    } catch {
      return ""; // a file that may not be read says nothing; doctor tells of it
    }
  }

  #readFile(name: string): string {
    const path = join(this.#folder, name);
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats?.isFile() !== true) return "";
    const stamp = `${stats.mtimeMs}:${stats.size}`;
    const cached = this.#files.get(name);
    if (cached?.stamp === stamp) return cached.text;
    const bytes = readFileSync(path);
    const body = new TextDecoder().decode(bytes.subarray(0, maxFileBytes)).trim();
    const cut = bytes.length > maxFileBytes ? "\n[truncated at 20 KB]" : "";
    const text = body === "" ? "" : `[${name}]\n${body}${cut}`;
    this.#files.set(name, { stamp, text });
    return text;
  }
}
