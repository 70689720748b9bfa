/**
 * An OpenAI-compatible model that always says the same, as a process of its own. How it streams is part of the model's
 * name: `mock-50x0` answers 50 chunks at once, `mock-50x20` one every 20 ms; `mock` does what it was last told over IPC
 * (a name of that shape), for gateways whose model is fixed by their configuration. On `"stats"` it says what it saw.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";

export const ModelStats = z.object({
  requests: z.number(),
  bodyBytes: z.number(),
  /** Of the one request in fifty that is decoded. */
  sampled: z.number(),
  sampledMessages: z.number(),
});
export type ModelStats = z.infer<typeof ModelStats>;

/** Every chunk is ten characters of ASCII, so an answer's length tells whether a chunk was lost. */
export const CHUNK_TEXT = "ten chars ";

const SAMPLE_EVERY = 50;
const Request = z.object({ model: z.string(), stream: z.literal(true), messages: z.array(z.unknown()) });

interface Pace {
  readonly chunks: number;
  readonly gapMs: number;
}

/** `undefined` for a name that does not tell a pace. */
export function paceOf(name: string): Pace | undefined {
  const match = /^mock-(\d{1,5})x(\d{1,5})$/.exec(name);
  return match === null ? undefined : { chunks: Number(match[1]), gapMs: Number(match[2]) };
}

export interface MockModel {
  readonly port: number;
  setPace(name: string): void;
  /** What was seen since the last call. */
  takeStats(): ModelStats;
  close(): void;
}

export async function startMockModel(port = 0): Promise<MockModel> {
  let pace: Pace = { chunks: 50, gapMs: 0 };
  let stats: ModelStats = { requests: 0, bodyBytes: 0, sampled: 0, sampledMessages: 0 };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readBody(request);
    stats.requests += 1;
    stats.bodyBytes += body.length;
    if (stats.requests % SAMPLE_EVERY === 1) {
      stats.sampled += 1;
      stats.sampledMessages += Request.parse(JSON.parse(body.toString())).messages.length;
    }
    answer(response, paceOf(modelName(body)) ?? pace, body.includes('"include_usage":true'));
  };
  const server = createServer((request, response) => {
    void serve(request, response).catch(() => response.destroy());
  });
  await listen(server, port);
  return {
    port: portOf(server),
    setPace: (name) => {
      pace = paceOf(name) ?? pace;
    },
    takeStats: () => {
      const taken = stats;
      stats = { requests: 0, bodyBytes: 0, sampled: 0, sampledMessages: 0 };
      return taken;
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Found without decoding the history: the name is looked for in the head and the tail of the body. */
function modelName(body: Buffer): string {
  const ends = body.toString("latin1", 0, 200) + body.toString("latin1", Math.max(200, body.length - 200));
  return /"model":"([^"]*)"/.exec(ends)?.[1] ?? "";
}

function answer(response: ServerResponse, pace: Pace, usage: boolean): void {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  const last = STOP + (usage ? usageFrame(pace.chunks) : "") + "data: [DONE]\n\n";
  if (pace.gapMs === 0) {
    response.end(ROLE + CHUNK.repeat(pace.chunks) + last);
    return;
  }
  response.write(ROLE + CHUNK);
  let left = pace.chunks - 1;
  const timer = setInterval(() => {
    if (left > 0) response.write(CHUNK);
    else response.end(last);
    left -= 1;
  }, pace.gapMs);
  response.on("close", () => clearInterval(timer));
}

const COMMON = { id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1, model: "mock" };
const ROLE = frame({ role: "assistant", content: "" }, null);
const CHUNK = frame({ content: CHUNK_TEXT }, null);
const STOP = frame({}, "stop");

function frame(delta: object, finish: string | null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return `data: ${JSON.stringify({ ...COMMON, choices })}\n\n`;
}

function usageFrame(chunks: number): string {
  const usage = { prompt_tokens: 1000, completion_tokens: chunks, total_tokens: 1000 + chunks };
  return `data: ${JSON.stringify({ ...COMMON, choices: [], usage })}\n\n`;
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(Buffer.from(part));
  return Buffer.concat(parts);
}

function listen(server: Server, port: number): Promise<void> {
  server.keepAliveTimeout = 60_000;
  return new Promise((resolve, reject) => {
    server.once("error", reject).listen(port, "127.0.0.1", 8192, () => resolve());
  });
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === "string") throw new Error("not listening on TCP");
  return address.port;
}

if (import.meta.main) {
  const model = await startMockModel(Number(process.argv[2] ?? 0));
  process.on("disconnect", () => process.exit(0));
  process.on("message", (message) => {
    if (message === "stats") process.send?.(model.takeStats());
    else model.setPace(String(message));
  });
  process.send?.({ port: model.port });
}
