/**
 * Follows Markdown through a text that arrives in pieces and knows whether its end lies inside code: a fence
 * (``` or ~~~, three or more, up to three spaces before them; CommonMark 0.31 §4.5) or inline code (§6.1).
 * Where a look ahead would be needed it decides for code: a run of backticks that its line does not close is
 * code up to the end of the line, a fence that is never closed is code up to the end of the text.
 */
export class MarkdownCode {
  /** The fence that the text is in; null outside. */
  #fence: { readonly mark: string; readonly length: number } | null = null;
  /** Length of the backtick run that opened the inline code of this line; 0 outside. */
  #inline = 0;
  /** Run of backticks or tildes that has not ended yet. */
  #mark = "";
  #run = 0;
  /** Spaces before the first other character of the line; -1 once that came. */
  #indent = 0;
  /** A fence opens if this line ends without a backtick in its info string. */
  #opening: { readonly mark: string; readonly length: number } | null = null;
  /** This line closes the fence if only blanks follow. */
  #closing = false;

  /** Takes the next piece of the text. */
  advance(text: string): void {
    for (const char of text) this.#step(char);
  }

  /** Whether a character that comes next, and is neither a backtick nor a tilde, lies inside code. */
  get inside(): boolean {
    if (this.#fence !== null) return true;
    if (this.#opening !== null)
      return !(this.#mark === this.#opening.mark && this.#run === this.#opening.length);
    if (this.#run === 0) return this.#inline > 0;
    if (this.#mark === "~") return this.#inline > 0 || this.#startsFence();
    return this.#inline === 0 || this.#inline !== this.#run;
  }

  /** Whether a fence would open if its marks came next. */
  get mayOpenFence(): boolean {
    return this.#fence === null && this.#run === 0 && this.#indent >= 0 && this.#indent <= 3;
  }

  #step(char: string): void {
    if (char === this.#mark && this.#run > 0) {
      this.#run += 1;
      return;
    }
    if (this.#run > 0) this.#endRun();
    if (char === "\n") this.#endLine();
    else if (char === "`" || char === "~") {
      this.#mark = char;
      this.#run = 1;
    } else if (char !== " " && char !== "\t" && char !== "\r") {
      this.#indent = -1;
      this.#closing = false;
    } else if (this.#indent >= 0) this.#indent += char === "\t" ? 4 : 1;
  }

  /** A run may start the line (then it may open or close a fence) and, if of backticks, delimits inline code. */
  #endRun(): void {
    const mark = this.#mark;
    const length = this.#run;
    if (this.#fence !== null) {
      this.#closing =
        this.#indent >= 0 && this.#indent <= 3 && mark === this.#fence.mark && length >= this.#fence.length;
    } else if (this.#startsFence()) {
      this.#opening = { mark, length };
    } else if (mark === "`" && this.#opening?.mark === "`") {
      // Not a fence after all: its info string has a backtick. The run was inline code, closed here or open.
      this.#inline = this.#opening.length === length ? 0 : this.#opening.length;
      this.#opening = null;
    } else if (mark === "`" && this.#opening === null) {
      this.#inline = this.#inline === 0 ? length : this.#inline === length ? 0 : this.#inline;
    }
    this.#run = 0;
    this.#indent = -1;
  }

  #startsFence(): boolean {
    return this.#fence === null && this.#run >= 3 && this.#indent >= 0 && this.#indent <= 3;
  }

  #endLine(): void {
    if (this.#closing) this.#fence = null;
    else if (this.#opening !== null) this.#fence = this.#opening;
    this.#opening = null;
    this.#closing = false;
    this.#inline = 0;
    this.#indent = 0;
  }
}
