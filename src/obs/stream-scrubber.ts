import type { LiteralFilter } from "./secrets/literals.ts";
import { Scanner } from "./secrets/scanner.ts";
import type { Trigger } from "./secrets/triggers.ts";

/**
 * Scrubs a text that arrives in pieces. What comes out, joined, equals the scrubbed whole, however the text
 * was cut. Held back is the word that is still growing, and from the start of a possible secret at most
 * `MAX_HELD` characters: by then every rule has decided, and the rest of an endless secret is dropped unseen.
 */
export class StreamScrubber {
  readonly #literals: LiteralFilter | null;
  readonly #scanner: Scanner;

  constructor(search: (text: string, from: number) => Trigger | null, literals: LiteralFilter | null) {
    this.#scanner = new Scanner(search);
    this.#literals = literals;
  }

  /** Takes the next piece; returns what may be shown now, "" if all of it waits. */
  push(delta: string): string {
    return this.#scanner.scan(this.#literals === null ? delta : this.#literals.push(delta), false);
  }

  /** Returns the rest. The scrubber can then be used for another text. */
  end(): string {
    return this.#scanner.scan(this.#literals === null ? "" : this.#literals.end(), true);
  }
}

/** Upper bound of what is held back, in UTF-16 code units, known literals not counted. */
export const MAX_HELD = 512;
