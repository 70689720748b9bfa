import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { BeamclawError, type ErrorCode, errorCatalogue } from "../domain/error-catalogue.ts";
import { dataOf, objectOf, textOf } from "./json-fields.ts";

/** An answer whose body has not been read yet. */
export interface StreamedAnswer {
  readonly headers: IncomingHttpHeaders;
  /** UTF-8 text as it arrives. Ends early only by throwing. */
  readonly body: AsyncIterable<string>;
}

export interface RequestOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long the daemon may be silent, milliseconds; 0 for ever. */
  readonly silenceMs?: number;
}

type Method = "GET" | "POST" | "DELETE";

const DEFAULT_SILENCE_MS = 30_000;
/** Answers that are read whole. */
const MAX_ANSWER_CHARS = 64 * 1_048_576;

/**
 * HTTP to the daemon over its control socket. Every failure is a `BeamclawError`: `daemon_unreachable` where
 * nobody answers, else what the daemon said. Plain `node:http`, because a command should start fast.
 */
export class DaemonClient {
  readonly #socket: string;

  constructor(socket: string) {
    this.#socket = socket;
  }

  get(path: string): Promise<unknown> {
    return this.#json("GET", path, {});
  }

  post(path: string, body: unknown, options: RequestOptions = {}): Promise<unknown> {
    return this.#json("POST", path, { ...options, body });
  }

  delete(path: string): Promise<unknown> {
    return this.#json("DELETE", path, {});
  }

  /** Entries of a cursor-paged list, at most `limit`, from its start or after the cursor `start`. */
  async list(path: string, limit: number, start: string | null = null): Promise<readonly unknown[]> {
    const found: unknown[] = [];
    let cursor = start;
    do {
      const size = Math.min(200, limit - found.length);
      const query: string = `limit=${size}${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`;
      const page = await this.get(`${path}${path.includes("?") ? "&" : "?"}${query}`);
      found.push(...dataOf(page));
      cursor = cursorOf(page);
    } while (cursor !== null && found.length < limit);
    return found.slice(0, limit);
  }

  /** Whether a daemon answers on the socket. */
  async isRunning(): Promise<boolean> {
    try {
      await this.get("/health");
      return true;
    } catch (error) {
      if (error instanceof BeamclawError && error.code === "daemon_unreachable") return false;
      throw error;
    }
  }

  async stream(method: Method, path: string, options: RequestOptions): Promise<StreamedAnswer> {
    const response = await this.#send(method, path, { silenceMs: 0, ...options });
    response.setEncoding("utf8");
    if ((response.statusCode ?? 500) >= 400) throw errorOf(await readWhole(response));
    return { headers: response.headers, body: readable(response) };
  }

  async #json(method: Method, path: string, options: RequestOptions): Promise<unknown> {
    const response = await this.#send(method, path, options);
    response.setEncoding("utf8");
    const text = await readWhole(response);
    if ((response.statusCode ?? 500) >= 400) throw errorOf(text);
    return text === "" ? null : parsed(text);
  }

  #send(method: Method, path: string, options: RequestOptions): Promise<IncomingMessage> {
    const { body, headers = {}, silenceMs = DEFAULT_SILENCE_MS } = options;
    const payload = body === undefined ? undefined : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const sent: ClientRequest = request({
        socketPath: this.#socket,
        method,
        path,
        timeout: silenceMs,
        headers: {
          host: "localhost",
          ...(payload !== undefined && {
            "content-type": "application/json",
            "content-length": Buffer.byteLength(payload),
          }),
          ...headers,
        },
      });
      sent.once("response", resolve);
      sent.once("timeout", () => {
        sent.destroy(unreachable(`the daemon was silent for ${silenceMs / 1000} s`));
      });
      sent.once("error", (error) => {
        reject(error instanceof BeamclawError ? error : unreachable(reason(error, this.#socket)));
      });
      sent.end(payload);
    });
  }
}

const unreachable = (message: string): BeamclawError => new BeamclawError("daemon_unreachable", message);

function reason(error: Error, socket: string): string {
  const code = "code" in error ? error.code : "";
  if (code === "ENOENT" || code === "ECONNREFUSED") return "no daemon is running";
  if (code === "EACCES") return `${socket} belongs to somebody else`;
  return `the daemon did not answer on ${socket} (${error.message})`;
}

/** The same stream, with a connection that breaks reported as such. */
async function* readable(response: IncomingMessage): AsyncIterable<string> {
  try {
    for await (const chunk of response) yield String(chunk);
  } catch (error) {
    throw unreachable(`the daemon's answer broke off (${error instanceof Error ? error.message : "?"})`);
  }
}

async function readWhole(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of readable(response)) {
    text += chunk;
    if (text.length > MAX_ANSWER_CHARS) throw new BeamclawError("internal", "the daemon's answer has no end");
  }
  return text;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw unreachable("something that is no beamclaw daemon answers on the socket");
  }
}

/** Reads both shapes of errors: ours, `{error, code}`, and OpenAI's, `{error: {message, code}}`. */
export function errorOf(text: string): BeamclawError {
  const content = objectOf(parsed(text));
  const inner = objectOf(content["error"]);
  const message = inner["message"] ?? content["error"];
  const code = textOf(inner["code"] ?? content["code"]);
  return new BeamclawError(isErrorCode(code) ? code : "internal", textOf(message) || "no reason was given");
}

const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(errorCatalogue, code);

function cursorOf(page: unknown): string | null {
  const cursor = objectOf(page)["next_cursor"];
  return typeof cursor === "string" ? cursor : null;
}
