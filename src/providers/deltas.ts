import type { ModelDelta } from "../agent/provider.ts";

/**
 * Passes deltas on and remembers what was said: the answer's text is by construction what the deltas add up
 * to, and a failure knows its partial text.
 */
export class Deltas {
  readonly #onDelta: (delta: ModelDelta) => void;
  #text = "";
  #started = false;
  #reasoningChars = 0;

  constructor(onDelta: (delta: ModelDelta) => void) {
    this.#onDelta = onDelta;
  }

  get text(): string {
    return this.#text;
  }

  get started(): boolean {
    return this.#started;
  }

  /** Characters passed on, thinking included. */
  get size(): number {
    return this.#text.length + this.#reasoningChars;
  }

  say(text: string): void {
    if (text === "") return;
    this.#text += text;
    this.#started = true;
    this.#onDelta({ kind: "text", text });
  }

  think(text: string): void {
    if (text === "") return;
    this.#reasoningChars += text.length;
    this.#started = true;
    this.#onDelta({ kind: "reasoning", text });
  }
}
