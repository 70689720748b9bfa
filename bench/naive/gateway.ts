/**
 * The usual libraries, wired the usual way: Fastify, zod for requests and rows, the official OpenAI client, commits on
 * the main thread, a synchronous log. It makes the same promise as the floor (both messages on disk before `[DONE]`),
 * so the difference between the two is the price of the wiring alone.
 */
import { parseArgs } from "node:util";
import Fastify from "fastify";
import OpenAI from "openai";
import { pino } from "pino";
import { z } from "zod";
import { openMessages } from "../floor/messages.ts";

const Message = z.object({ role: z.enum(["user", "assistant"]), content: z.string() });
const ChatRequest = z.object({
  model: z.string(),
  stream: z.literal(true),
  messages: z.array(Message).min(1),
});
const ChatHeaders = z.looseObject({ "x-session-id": z.string() });

export interface NaiveOptions {
  readonly port: number;
  readonly file: string;
  readonly upstream: number;
  readonly logFile: string;
}

export async function startNaive(options: NaiveOptions): Promise<{ close(): Promise<void> }> {
  const log = pino({}, pino.destination({ dest: options.logFile, sync: true }));
  const db = openMessages(options.file);
  const insert = db.prepare("insert into messages values(?, ?, ?)");
  const history = db
    .prepare<[string], Buffer>("select json from messages where session=? order by seq")
    .pluck();
  const last = db
    .prepare<[string], number>("select coalesce(max(seq), -1) from messages where session=?")
    .pluck();
  const append = db.transaction((session: string, messages: readonly z.infer<typeof Message>[]) => {
    let seq = last.get(session) ?? -1;
    for (const message of messages) insert.run(session, ++seq, Buffer.from(JSON.stringify(message)));
  });
  const model = new OpenAI({
    apiKey: "none",
    baseURL: `http://127.0.0.1:${options.upstream}/v1`,
    maxRetries: 0,
  });
  const app = Fastify({ logger: false });

  app.get("/health", () => "ok");
  app.post("/v1/chat/completions", async (request, reply) => {
    const { messages } = ChatRequest.parse(request.body);
    const session = ChatHeaders.parse(request.headers)["x-session-id"];
    append(session, messages);
    const past = history.all(session).map((json) => Message.parse(JSON.parse(json.toString())));
    log.info({ session }, "turn started");
    reply.hijack();
    reply.raw.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    const stream = await model.chat.completions.create({ model: "mock", stream: true, messages: past });
    let text = "";
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      reply.raw.write(`data: ${JSON.stringify(chunk)}\n\n`);
    }
    append(session, [{ role: "assistant", content: text }]);
    log.info({ session, chars: text.length }, "turn ended");
    reply.raw.end("data: [DONE]\n\n");
  });

  await app.listen({ port: options.port, host: "127.0.0.1", backlog: 8192 });
  return {
    close: async () => {
      await app.close();
      db.close();
    },
  };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      port: { type: "string" },
      file: { type: "string" },
      upstream: { type: "string" },
      log: { type: "string" },
    },
  });
  await startNaive({
    port: Number(values.port),
    file: values.file ?? "",
    upstream: Number(values.upstream),
    logFile: values.log ?? "/dev/null",
  });
}
