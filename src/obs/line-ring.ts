/** The last lines of a log, for those who ask later, and the next ones for those who listen. */
export class LineRing {
  readonly #lines: string[] = [];
  #length = 0;
  readonly #followers = new Set<(line: string) => void>();

  /** Drops the oldest lines beyond the bounds. Never throws; a listener that does is not called again. */
  add(line: string): void {
    this.#lines.push(line);
    this.#length += line.length;
    while (this.#lines.length > MAX_LINES || this.#length > MAX_CHARACTERS) {
      this.#length -= this.#lines.shift()?.length ?? 0;
    }
    for (const follower of this.#followers) {
      try {
        follower(line);
      } catch {
        this.#followers.delete(follower);
      }
    }
  }

  /** The last `limit` lines, oldest first. */
  last(limit: number): readonly string[] {
    return limit <= 0 ? [] : this.#lines.slice(-limit);
  }

  follow(listener: (line: string) => void): () => void {
    this.#followers.add(listener);
    return () => this.#followers.delete(listener);
  }

  /** Forgets the listeners. */
  close(): void {
    this.#followers.clear();
  }
}

export const MAX_LINES = 1_000;
/** UTF-16 code units of all lines. */
export const MAX_CHARACTERS = 1_048_576;
