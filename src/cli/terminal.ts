import type { Readable, Writable } from "node:stream";

export interface Streams {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable & { readonly isTTY?: boolean };
}

/** Longest text that is read from standard input, bytes. */
const MAX_INPUT_BYTES = 8_388_608;

/** The person or script in front of a command: results on stdout, everything else on stderr. */
export class Terminal {
  readonly streams: Streams;

  constructor(streams: Streams) {
    this.streams = streams;
  }

  /** Whether a person reads the results. */
  get isShown(): boolean {
    return this.streams.stdout.isTTY === true;
  }

  /** Whether a person can be asked. */
  get canAsk(): boolean {
    return this.isShown && this.streams.stdin.isTTY === true;
  }

  /** Result text as it is; on a terminal without what could steer it, because models write it. */
  write(text: string): void {
    this.streams.stdout.write(this.isShown ? withoutControls(text) : text);
  }

  /** Like `write`, and waits until the reader has taken it: for output without a bound. */
  put(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.streams.stdout.write(this.isShown ? withoutControls(text) : text, (error) => {
        if (error) reject(error);
        else resolve();
      });
    });
  }

  line(text = ""): void {
    this.write(`${text}\n`);
  }

  json(value: unknown): void {
    this.line(JSON.stringify(value, null, 2));
  }

  /** Remarks and errors. */
  note(text: string): void {
    this.streams.stderr.write(`${withoutControls(text)}\n`);
  }

  /** Rows in aligned columns under headings. */
  table(headings: readonly string[], rows: readonly (readonly string[])[]): void {
    const all = [headings.map((heading) => heading.toUpperCase()), ...rows];
    const widths = headings.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
    for (const row of all) {
      this.line(
        row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join("  ")
          .trimEnd(),
      );
    }
  }

  /** The answer to a question, trimmed; null at the end of the input. */
  async ask(question: string): Promise<string | null> {
    const { createInterface } = await import("node:readline"); // brings a whole line editor along
    const { stdin: input, stderr } = this.streams;
    // The kernel's own line editing is enough, and leaves nothing behind if the process is killed.
    const reader = createInterface({ input, terminal: false });
    stderr.write(question);
    return new Promise((resolve) => {
      reader.once("close", () => {
        resolve(null);
      });
      reader.once("line", (answer) => {
        resolve(answer.trim());
        reader.close();
      });
    });
  }

  /** All of standard input. Throws a RangeError beyond 8 MiB. */
  async readInput(): Promise<string> {
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of this.streams.stdin) {
      const bytes = Buffer.from(chunk);
      size += bytes.length;
      if (size > MAX_INPUT_BYTES) throw new RangeError("the input is larger than 8 MiB");
      chunks.push(bytes);
    }
    return Buffer.concat(chunks).toString("utf8");
  }
}

/** C0 and C1 controls but newline and tab: escape sequences could rewrite what a person sees. */
// oxlint-disable-next-line no-control-regex
const withoutControls = (text: string): string => text.replaceAll(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, "");
