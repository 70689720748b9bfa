/**
 * The smallest honest durable gateway: what any gateway that keeps the conversation has to do, and nothing else.
 * A turn reads the session's history, calls the model, relays its stream. The user's message is committed
 * (`synchronous=FULL`) before the first byte goes out, the answer before `[DONE]`. No auth, no validation beyond the
 * shape, no policy, no metrics, no log. The product is measured as a multiple of this.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { parseArgs } from "node:util";
import type Database from "better-sqlite3";
import { Pool, type Dispatcher } from "undici";
import { GroupCommit } from "./group-commit.ts";
import { openMessages } from "./messages.ts";

interface Message {
  readonly role: string;
  readonly content: string;
}

export interface FloorOptions {
  readonly port: number;
  readonly file: string;
  readonly upstream: number;
}

export interface Floor {
  close(): Promise<void>;
}

export async function startFloor({ port, file, upstream }: FloorOptions): Promise<Floor> {
  const db = openMessages(file);
  const commits = new GroupCommit(file);
  const pool = new Pool(`http://127.0.0.1:${upstream}`, {
    connections: null,
    bodyTimeout: 0,
    headersTimeout: 0,
  });
  const chat = chatHandler(db, commits, pool);
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    if (request.method === "GET") response.end("ok");
    else void chat(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", 8192, resolve));
  return {
    close: async () => {
      server.closeAllConnections();
      server.close();
      await Promise.all([pool.destroy(), commits.close()]);
      db.close();
    },
  };
}

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

function chatHandler(db: Database.Database, commits: GroupCommit, pool: Pool): Handler {
  const history = db
    .prepare<[string], Buffer>("select json from messages where session=? order by seq")
    .pluck();
  const sequences = new Sequences(db);
  return async (request, response) => {
    const session = request.headers["x-session-id"];
    const messages = parseMessages(await readBody(request));
    if (typeof session !== "string" || messages === undefined) {
      response.writeHead(400).end();
      return;
    }
    const past = history.all(session);
    const texts = messages.map(({ role, content }) => JSON.stringify({ role, content }));
    const durable = commits.append(texts.map((json) => [session, sequences.next(session), json]));
    const body = Buffer.concat([
      Buffer.from('{"model":"mock","stream":true,"messages":['),
      ...past.flatMap((json) => [json, COMMA]),
      Buffer.from(`${texts.join(",")}]}`),
    ]);
    const keep = (text: string): Promise<void> =>
      commits.append([
        [session, sequences.next(session), JSON.stringify({ role: "assistant", content: text })],
      ]);
    const call = { path: "/v1/chat/completions", method: "POST", headers: JSON_BODY, body } as const;
    pool.dispatch(call, relay(response, durable, keep));
  };
}

const COMMA = Buffer.from(",");
const DONE = Buffer.from("data: [DONE]\n\n");
const JSON_BODY = { "content-type": "application/json" };
const EVENT_STREAM = { "content-type": "text/event-stream", "cache-control": "no-cache" };

/** Relays whole SSE events as they are: the first waits for `durable`, `[DONE]` for the answer's own commit. */
function relay(
  response: ServerResponse,
  durable: Promise<void>,
  commit: (text: string) => Promise<void>,
): Dispatcher.DispatchHandler {
  let rest: Buffer = Buffer.alloc(0);
  let text = "";
  let held: Buffer[] | undefined = [];
  let upstream: Dispatcher.DispatchController | undefined;
  const send = (bytes: Buffer): void => {
    if (response.write(bytes)) return;
    upstream?.pause();
    response.once("drain", () => upstream?.resume());
  };
  const release = (): void => {
    const ready = Buffer.concat(held ?? []);
    held = undefined;
    if (ready.length > 0) send(ready);
  };
  void durable.then(release);
  response.once("close", () => {
    if (!response.writableFinished) upstream?.abort(new Error("client gone"));
  });
  return {
    onRequestStart: (controller) => {
      upstream = controller;
    },
    onResponseStart: () => {
      response.writeHead(200, EVENT_STREAM);
    },
    onResponseData: (_controller, bytes) => {
      const all = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
      const end = all.lastIndexOf("\n\n") + 2;
      if (end < 2) {
        rest = all;
        return;
      }
      rest = all.subarray(end);
      const last = all.subarray(end - DONE.length, end).equals(DONE);
      const events = all.subarray(0, last ? end - DONE.length : end);
      text += deltas(events.toString());
      if (held === undefined) send(events);
      else held.push(events);
    },
    onResponseEnd: () => {
      void durable.then(() => commit(text)).then(() => response.end(DONE));
    },
    onResponseError: () => {
      response.destroy();
    },
  };
}

/** The text in a run of whole events. */
function deltas(events: string): string {
  let text = "";
  for (const event of events.split("\n\n")) {
    if (!event.startsWith("data: {")) continue;
    const chunk: { choices: [{ delta: { content?: string } }?] } = JSON.parse(event.slice(6));
    text += chunk.choices[0]?.delta.content ?? "";
  }
  return text;
}

/** The next sequence number of each session that was seen, read from the disk once. */
class Sequences {
  readonly #next = new Map<string, number>();
  readonly #last;

  constructor(db: Database.Database) {
    this.#last = db
      .prepare<[string], number>("select coalesce(max(seq), -1) from messages where session=?")
      .pluck();
  }

  next(session: string): number {
    const seq = this.#next.get(session) ?? (this.#last.get(session) ?? -1) + 1;
    this.#next.set(session, seq + 1);
    return seq;
  }
}

function parseMessages(body: string): readonly Message[] | undefined {
  const { messages }: { messages?: unknown } = JSON.parse(body);
  return Array.isArray(messages) && messages.length > 0 && messages.every(isMessage) ? messages : undefined;
}

function isMessage(value: unknown): value is Message {
  if (typeof value !== "object" || value === null) return false;
  return (
    "role" in value &&
    typeof value.role === "string" &&
    "content" in value &&
    typeof value.content === "string"
  );
}

function readBody(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  return new Promise((resolve, reject) => {
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => resolve(Buffer.concat(parts).toString()));
    request.on("error", reject);
  });
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { port: { type: "string" }, file: { type: "string" }, upstream: { type: "string" } },
    strict: false,
  });
  await startFloor({
    port: Number(values.port),
    file: String(values.file),
    upstream: Number(values.upstream),
  });
}
