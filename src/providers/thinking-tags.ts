import { MarkdownCode } from "./markdown-code.ts";

/*
 * Takes the thinking out of answers of models that write it into their text. The elements `think`, `thinking`,
 * `thought` and `antThinking` go with their content, the tags `final` go and their content stays; in any case,
 * with blanks inside the brackets, without attributes. Tags inside Markdown code are text. An element ends at
 * the first closing tag of its own name; one that is never closed runs to the end. Blanks at the start of
 * the answer are dropped. If nothing is left, only the tags are taken out and what was inside them is shown.
 */
const TAG = /^<\s{0,8}(\/?)\s{0,8}(think|thinking|thought|antthinking|final)\s{0,8}>/i;
/** The beginning of such a tag, at the end of what has arrived. */
const TAG_START = /^<\s{0,8}\/?\s{0,8}([a-z]{0,11})\s{0,8}$/i;
/** Longer than any tag. */
const TAG_WINDOW = 40;
const NAMES = ["think", "thinking", "thought", "antthinking", "final"];

/** The whole text at once. */
export function stripThinking(text: string): string {
  if (!text.includes("<")) return text.trimStart();
  const stripper = new ThinkingStripper();
  return stripper.push(text) + stripper.end();
}

/** The same while the text arrives: whatever the chunking, the pieces add up to `stripThinking` of the whole. */
export class ThinkingStripper {
  readonly #fallback: boolean;
  #code = new MarkdownCode();
  /** The last characters, if a tag may begin there. */
  #pending = "";
  /** Name of the element whose content is being dropped. */
  #element: string | null = null;
  #visible = false;
  /** All that has come while nothing was visible: the fallback needs it. */
  #raw = "";

  /** `fallback: false` drops tags only and needs no fallback of its own. */
  constructor(options: { readonly fallback: boolean } = { fallback: true }) {
    this.#fallback = options.fallback;
  }

  /** What can be shown of the text so far, beyond what has been returned before. */
  push(text: string): string {
    if (!this.#visible) this.#raw += text;
    if (this.#pending === "" && this.#element === null && !text.includes("<")) return this.#show(text);
    const buffer = this.#pending + text;
    this.#pending = "";
    let out = "";
    let at = 0;
    while (at < buffer.length) {
      const bracket = buffer.indexOf("<", at);
      if (bracket < 0) return out + this.#take(buffer.slice(at));
      out += this.#take(buffer.slice(at, bracket));
      const tag = this.#tagAt(buffer, bracket);
      if (tag === "partial") {
        this.#pending = buffer.slice(bracket);
        return out;
      }
      if (tag === null) out += this.#take("<");
      at = bracket + (tag === null ? 1 : tag.length);
    }
    return out;
  }

  /** The text is over: what was held back because it might have become a tag, or the fallback. */
  end(): string {
    const rest = this.#take(this.#pending);
    this.#pending = "";
    if (this.#visible || !this.#fallback) return rest;
    const tagsOnly = new ThinkingStripper({ fallback: false });
    return tagsOnly.push(this.#raw) + tagsOnly.end();
  }

  /** Looks for a tag at `at` and applies it. Null: the bracket is text. */
  #tagAt(buffer: string, at: number): { readonly length: number } | "partial" | null {
    if (this.#element === null && this.#code.inside) return null;
    const window = buffer.slice(at, at + TAG_WINDOW);
    const match = TAG.exec(window);
    if (match === null) {
      const name = TAG_START.exec(window)?.[1]?.toLowerCase();
      return name !== undefined && NAMES.some((known) => known.startsWith(name)) ? "partial" : null;
    }
    const name = (match[2] ?? "").toLowerCase();
    return this.#apply(name, match[1] === "/") ? { length: match[0].length } : null;
  }

  /** False where the tag means nothing here and stays text: a closing tag that nothing has opened. */
  #apply(name: string, closing: boolean): boolean {
    if (name === "final" || !this.#fallback) return this.#element === null;
    if (this.#element === null) {
      if (closing) return false;
      this.#element = name;
      return true;
    }
    if (!closing || name !== this.#element) return false;
    this.#element = null;
    return true;
  }

  #take(text: string): string {
    return this.#element === null ? this.#show(text) : "";
  }

  #show(text: string): string {
    const shown = this.#visible ? text : text.trimStart();
    if (shown === "") return "";
    this.#visible = true;
    this.#raw = "";
    this.#code.advance(shown);
    return shown;
  }
}
