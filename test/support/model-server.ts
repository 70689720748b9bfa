import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { argv, stdout } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { defaultStep, lastUser, pairingProblem, type Conversation } from "./model-conversation.ts";
import { parseScript, type Step } from "./model-script.ts";
import * as anthropic from "./model-wire-anthropic.ts";
import * as openai from "./model-wire-openai.ts";
import { openaiSchema } from "./openai-schema.ts";

/**
 * A model API of our own over real HTTP: OpenAI's chat completions (`POST /v1/chat/completions`) and Anthropic's
 * Messages (`POST /v1/messages`). It refuses what strict APIs refuse and plays scripts (`model-script.ts`) that
 * come with the request (last user message, header `x-model-script`, model name after its first `!`) or ahead of
 * it (`enqueue`, or `POST /control/script` with the script as body). Also as a process:
 * `node test/support/model-server.ts --port 0` prints its port; `GET /control/requests` shows what it saw.
 */
export interface ModelServer {
  /** `http://127.0.0.1:PORT` */
  readonly origin: string;
  readonly requests: readonly RecordedRequest[];
  /** Resolves with the next request to come in. */
  nextRequest(): Promise<RecordedRequest>;
  /** Steps for the next requests, one each, before anything that those bring themselves. */
  enqueue(script: string): void;
  close(): Promise<void>;
}

export interface RecordedRequest {
  readonly path: string;
  /** The client's end of the connection: equal for requests that shared one. */
  readonly port: number | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Record<string, unknown>;
  /** What the server refused it for; null where it accepted it. */
  readonly problem: string | null;
  /** How the connection ended. */
  readonly closed: Promise<"finished" | "aborted">;
}

type Protocol = "openai" | "anthropic";

const MAX_RECORDED = 10_000;
/** Bytes between two cuts of `!cut`: shorter than some characters are long. */
const CUT_BYTES = 3;

export async function startModelServer(port = 0): Promise<ModelServer> {
  const state = new State();
  const server = createServer((request, response) => {
    handle(state, request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  server.on("connection", (socket) => socket.setNoDelay(true));
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: state.requests,
    nextRequest: () => new Promise((resolve) => state.waiting.push(resolve)),
    enqueue: (script) => state.queue.push(...parseScript(script)),
    close: () => closeServer(server),
  };
}

async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
}

class State {
  readonly requests: RecordedRequest[] = [];
  readonly queue: Step[] = [];
  readonly waiting: ((request: RecordedRequest) => void)[] = [];
  readonly schema = openaiSchema();
  readonly #played = new Map<string, number>();

  step(conversation: Conversation, header: string): Step {
    const queued = this.queue.shift();
    if (queued !== undefined) return queued;
    const bang = conversation.model.indexOf("!");
    const { text, answers } = lastUser(conversation.turns);
    const scripts = [header, bang < 0 ? "" : conversation.model.slice(bang), text];
    const steps = scripts.map(parseScript).find((candidate) => candidate.length > 0) ?? [];
    return this.#reached(steps, answers) ?? defaultStep(conversation.turns);
  }

  /** A line with `times` ends its request without an answer, so it takes no place in the count of answers. */
  #reached(steps: readonly Step[], answers: number): Step | undefined {
    let before = answers;
    for (const step of steps) {
      const times = step.options["times"];
      if (times === undefined && before === 0) return step;
      if (times === undefined) before -= 1;
      else if (before === 0 && this.#once(step.line, Number(times))) return step;
    }
    return undefined;
  }

  #once(line: string, times: number): boolean {
    const played = this.#played.get(line) ?? 0;
    this.#played.set(line, played + 1);
    return played < times;
  }
}

async function handle(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  const path = new URL(request.url ?? "/", "http://localhost").pathname;
  if (path === "/control/script") {
    state.queue.push(...parseScript(text));
    return void response.writeHead(204).end();
  }
  if (path === "/control/requests")
    return sendJson(
      response,
      200,
      state.requests.map(({ path: asked, headers, body, problem }) => ({
        path: asked,
        headers,
        body,
        problem,
      })),
    );
  const protocol: Protocol | null = path.endsWith("/chat/completions")
    ? "openai"
    : path.endsWith("/v1/messages")
      ? "anthropic"
      : null;
  if (protocol === null) return sendError(response, "openai", 404, "no such route");
  await answer(state, protocol, request, response, JSON.parse(text) as Record<string, unknown>);
}

async function answer(
  state: State,
  protocol: Protocol,
  request: IncomingMessage,
  response: ServerResponse,
  body: Record<string, unknown>,
): Promise<void> {
  const conversation = protocol === "openai" ? openai.readOpenAi(body) : anthropic.readAnthropic(body);
  const problem =
    (protocol === "anthropic" ? anthropic.anthropicProblem(body) : schemaProblem(state, body)) ??
    pairingProblem(conversation.turns);
  record(state, request, response, body, problem);
  if (problem !== null) return sendError(response, protocol, 400, problem);
  const step = state.step(
    conversation,
    String(request.headers["x-model-script"] ?? "").replaceAll(";;", "\n"),
  );
  await play(step, protocol, conversation, response);
}

const schemaProblem = (state: State, body: unknown): string | null =>
  state.schema?.validate("CreateChatCompletionRequest", body)[0] ?? null;

function record(
  state: State,
  request: IncomingMessage,
  response: ServerResponse,
  body: Record<string, unknown>,
  problem: string | null,
): void {
  const closed = new Promise<"finished" | "aborted">((resolve) => {
    response.once("close", () => resolve(response.writableFinished ? "finished" : "aborted"));
  });
  if (state.requests.length >= MAX_RECORDED) state.requests.shift();
  const { url: path = "", headers } = request;
  const recorded = { path, port: request.socket.remotePort, headers, body, problem, closed };
  state.requests.push(recorded);
  for (const resolve of state.waiting.splice(0)) resolve(recorded);
}

async function play(
  step: Step,
  protocol: Protocol,
  conversation: Conversation,
  response: ServerResponse,
): Promise<void> {
  const { kind } = step;
  if (kind === "status") return sendStatus(response, protocol, step);
  if (kind === "error") {
    return sendJson(response, 200, errorBody(protocol, 500, step.text || "the upstream failed"));
  }
  if (kind === "html") {
    return void response.writeHead(200, { "content-type": "text/html" }).end("<html>maintenance</html>");
  }
  if (kind === "json" || !conversation.stream) {
    return sendJson(response, 200, document(protocol, step, conversation));
  }
  await playFrames(response, frames(protocol, step, conversation), step);
}

const document = (protocol: Protocol, step: Step, conversation: Conversation): object =>
  protocol === "openai"
    ? openai.openAiDocument(step, conversation)
    : anthropic.anthropicDocument(step, conversation);

/** The frames of the answer with the script's fault worked in. `after` counts deltas of the text. */
function frames(protocol: Protocol, step: Step, conversation: Conversation): openai.Frame[] {
  if (step.kind === "empty") {
    return protocol === "openai" ? openai.openAiEmptyFrames(conversation) : anthropic.anthropicEmptyFrames();
  }
  const broken = step.kind === "reset" || step.kind === "stall" || step.kind === "malformed";
  const told = broken && step.text === "" ? { ...step, text: "one two three four five six seven" } : step;
  const all =
    protocol === "openai"
      ? openai.openAiFrames(told, conversation)
      : anthropic.anthropicFrames(told, conversation);
  if (!broken) return all;
  const after = step.options["after"];
  const lead = protocol === "openai" ? 1 : 3; // frames before the first delta
  const cut = after === undefined ? (step.kind === "malformed" ? lead : 0) : lead + Number(after);
  const end: openai.Frame = step.kind === "malformed" ? "data: {not json\n\n" : { happens: step.kind };
  return [...all.slice(0, cut), end];
}

async function playFrames(
  response: ServerResponse,
  list: readonly openai.Frame[],
  step: Step,
): Promise<void> {
  const first = list[0];
  if (typeof first === "object") return happen(response, first);
  response.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
  });
  if (step.kind === "cut")
    return await writeCut(response, list.filter((frame) => typeof frame === "string").join(""));
  const gap = Number(step.options["gap"] ?? 0);
  for (const frame of list) {
    if (response.destroyed) return;
    if (typeof frame === "object") {
      await sleep(2); // what was written before goes out first
      return happen(response, frame);
    }
    response.write(frame);
    if (gap > 0) await sleep(gap);
  }
  response.end();
}

function happen(response: ServerResponse, { happens }: Exclude<openai.Frame, string>): void {
  if (happens === "reset") response.destroy(); // a stall is what follows if nothing is done
}

async function writeCut(response: ServerResponse, text: string): Promise<void> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += CUT_BYTES) {
    response.write(bytes.subarray(at, at + CUT_BYTES));
    await new Promise(setImmediate);
  }
  response.end();
}

function sendStatus(response: ServerResponse, protocol: Protocol, step: Step): void {
  const retryAfter = step.options["retry-after"];
  if (retryAfter !== undefined) response.setHeader("retry-after", retryAfter);
  sendError(response, protocol, Number(step.options["code"] ?? 500), step.text || "told to fail");
}

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  429: "rate_limit_error",
  500: "api_error",
  529: "overloaded_error",
};

const errorBody = (protocol: Protocol, status: number, message: string): object => {
  const type = ERROR_TYPES[status] ?? "api_error";
  return protocol === "openai"
    ? openai.openAiError(message, type, null)
    : anthropic.anthropicError(message, type);
};

function sendError(response: ServerResponse, protocol: Protocol, status: number, message: string): void {
  sendJson(response, status, errorBody(protocol, status, message));
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

if (import.meta.main) {
  const { values } = parseArgs({ args: argv.slice(2), options: { port: { type: "string", default: "0" } } });
  const server = await startModelServer(Number(values.port));
  stdout.write(`${new URL(server.origin).port}\n`);
}
