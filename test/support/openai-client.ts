/**
 * The official `openai` client before a running daemon. Everything that it receives is also held against
 * OpenAI's published schema, which is stricter than the client.
 */
import OpenAI, { type ClientOptions } from "openai";
import { framesOf } from "../gateway/sse-client.ts";
import type { DaemonWorld } from "./daemon-world.ts";
import { openaiSchema } from "./openai-schema.ts";

export class SchemaJudge {
  /** Null where OpenAI's description is not at hand; then nothing is judged. */
  readonly #schema = openaiSchema();
  readonly #pending = new Set<Promise<void>>();
  readonly #complaints: string[] = [];
  #judged = 0;

  get present(): boolean {
    return this.#schema !== null;
  }

  /** `fetch` that keeps a copy of what comes back. */
  readonly fetch: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    const path = new URL(input instanceof Request ? input.url : input).pathname;
    const pending = this.#judge(path, response.clone()).finally(() => this.#pending.delete(pending));
    this.#pending.add(pending);
    return response;
  };

  /** How many objects have been judged, and what was wrong with them. */
  async verdict(): Promise<{ readonly judged: number; readonly complaints: readonly string[] }> {
    await Promise.all(this.#pending);
    return { judged: this.#judged, complaints: this.#complaints };
  }

  async #judge(path: string, response: Response): Promise<void> {
    const { text, whole } = await textOf(response);
    if (response.headers.get("content-type")?.startsWith("text/event-stream") === true) {
      this.#frames(text, whole);
    } else if (whole) {
      this.#check(response.ok ? schemaOf(path) : "ErrorResponse", JSON.parse(text));
    }
  }

  /** A stream ends with its mark, or with one error and no mark. A client that went away saw less. */
  #frames(text: string, whole: boolean): void {
    const data = framesOf(text).flatMap((frame) => (frame.startsWith("data: ") ? [frame.slice(6)] : []));
    const ends: string[] = [];
    for (const item of data) {
      if (ends.length > 0) this.#complaints.push(`${item} follows the end`);
      const value: unknown = item === "[DONE]" ? null : JSON.parse(item);
      const isError = typeof value === "object" && value !== null && "error" in value;
      if (value === null || isError) ends.push(item);
      if (value !== null)
        this.#check(isError ? "ErrorResponse" : "CreateChatCompletionStreamResponse", value);
    }
    if (whole && ends.length !== 1) this.#complaints.push(`${ends.length} ends of one stream`);
  }

  #check(name: string, value: unknown): void {
    this.#judged += 1;
    for (const complaint of this.#schema?.validate(name, value) ?? []) {
      this.#complaints.push(`${name}${complaint} in ${JSON.stringify(value)}`);
    }
  }
}

const schemaOf = (path: string): string =>
  path.endsWith("/chat/completions")
    ? "CreateChatCompletionResponse"
    : path.endsWith("/models")
      ? "ListModelsResponse"
      : "Model";

/** What arrived until the end, or until the client went away. */
async function textOf(response: Response): Promise<{ readonly text: string; readonly whole: boolean }> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes, { stream: true });
    return { text, whole: true };
  } catch {
    // Only the frames that came whole count.
    return { text: text.slice(0, text.lastIndexOf("\n\n") + 2), whole: false };
  }
}

/** A client of the daemon that runs now; `session` null makes stateless requests. Never retries by itself. */
export function openaiClient(
  world: DaemonWorld,
  judge: SchemaJudge,
  session: string | null,
  options: ClientOptions = {},
): OpenAI {
  return new OpenAI({
    baseURL: `${world.daemon.url}/v1`,
    apiKey: world.daemon.token,
    maxRetries: 0,
    fetch: judge.fetch,
    ...(session !== null && { defaultHeaders: { "X-Session-Id": session } }),
    ...options,
  });
}

/** A request of one user message. */
export const saying = (
  content: string,
): { model: string; messages: { role: "user"; content: string }[] } => ({
  model: "beamclaw",
  messages: [{ role: "user", content }],
});

/** Everything that a stream or a paged list yields. */
export async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

/** The body of the last request to the model's API. */
export const sentUpstream = (world: DaemonWorld): Readonly<Record<string, unknown>> =>
  world.model.requests.at(-1)?.body ?? {};

/** The messages of that request without the system's part. */
export const conversationUpstream = (
  world: DaemonWorld,
): readonly { readonly role: string; readonly content: unknown }[] =>
  (sentUpstream(world)["messages"] as { role: string; content: unknown }[]).filter(
    ({ role }) => role !== "system",
  );

/** What the model's API found wrong with what it was sent. */
export const refusedUpstream = (world: DaemonWorld): readonly string[] =>
  world.model.requests.flatMap(({ problem }) => problem ?? []);
