import type { ModelDelta } from "../agent/provider.ts";

/**
 * Passes deltas on and remembers what was said: the answer's text is by construction what the deltas add up
 * to, and a failure knows its partial text. Between `gather` and `release` deltas of one kind become one:
 * what arrives in one read of the socket costs everybody downstream one step and not one per token.
 */
export class Deltas {
  readonly #onDelta: (delta: ModelDelta) => void;
  #gathering = false;
  #held: ModelDelta | null = null;
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
    this.#pass({ kind: "text", text });
  }

  think(text: string): void {
    if (text === "") return;
    this.#reasoningChars += text.length;
    this.#started = true;
    this.#pass({ kind: "reasoning", text });
  }

  /** Holds deltas until `release`, which must follow in the same task. */
  gather(): void {
    this.#gathering = true;
  }

  release(): void {
    this.#gathering = false;
    const held = this.#held;
    this.#held = null;
    if (held !== null) this.#onDelta(held);
  }

  #pass(delta: ModelDelta): void {
    const held = this.#held;
    if (!this.#gathering) this.#onDelta(delta);
    else if (held === null) this.#held = delta;
    else if (held.kind === delta.kind) this.#held = { kind: delta.kind, text: held.text + delta.text };
    else {
      this.#held = delta;
      this.#onDelta(held);
    }
  }
}
