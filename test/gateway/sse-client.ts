/** A client of server-sent events that shows what came over the wire, frame by frame. */
export class SseClient {
  readonly status: number;
  readonly headers: Headers;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = "";
  #done = false;

  constructor(response: Response) {
    if (response.body === null) throw new Error("the response has no body");
    this.status = response.status;
    this.headers = response.headers;
    this.#reader = response.body.getReader();
  }

  /** The next frame without its blank line; null at the end. */
  async next(): Promise<string | null> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end >= 0) {
        const frame = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        return frame;
      }
      if (this.#done) return null;
      const { value, done } = await this.#reader.read();
      this.#done = done;
      this.#text += this.#decoder.decode(value, { stream: !done });
    }
  }

  async all(): Promise<readonly string[]> {
    const frames: string[] = [];
    for (let frame = await this.next(); frame !== null; frame = await this.next()) frames.push(frame);
    return frames;
  }

  async close(): Promise<void> {
    await this.#reader.cancel();
  }
}

export interface Chunk {
  readonly id: string;
  readonly choices: readonly {
    readonly delta: {
      readonly role?: string;
      readonly content?: string;
      readonly tool_calls?: readonly unknown[];
    };
    readonly finish_reason: string | null;
  }[];
  readonly usage?: unknown;
  readonly error?: { readonly code: string };
  readonly approval_id?: string;
}

/** The JSON of a `data:` frame. */
export const chunkOf = (frame: string | null): Chunk =>
  JSON.parse(frame?.replace(/^data: /, "") ?? "null") as Chunk;

/** The chunks of a body, and whether the end mark came last. */
export function chunksOf(frames: readonly string[]): {
  readonly chunks: readonly Chunk[];
  readonly done: boolean;
} {
  const done = frames.at(-1) === "data: [DONE]";
  const data = frames.filter((frame) => frame.startsWith("data: {"));
  return { chunks: data.map(chunkOf), done };
}

export const framesOf = (body: string): readonly string[] =>
  body.split("\n\n").filter((frame) => frame !== "");

export const contentOf = (chunks: readonly Chunk[]): string =>
  chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
