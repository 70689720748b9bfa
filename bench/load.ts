/** A load: so many turns by so many callers over a set of sessions. Fixed in count, so that histories stay equal. */
import { performance } from "node:perf_hooks";
import { z } from "zod";
import { TurnConnection } from "./turn-connection.ts";

export const Load = z.object({
  port: z.number().int(),
  token: z.string(),
  model: z.string(),
  callers: z.number().int().positive(),
  turns: z.number().int().positive(),
  /** Turn `i` belongs to session `<prefix>-<i % sessions>`. */
  prefix: z.string(),
  sessions: z.number().int().positive(),
  /** User messages in each request: 1 for a turn, many to give a session its history. */
  messages: z.number().int().positive(),
  /** Characters that every answer must hold. */
  answerChars: z.number().int(),
});
export type Load = z.infer<typeof Load>;

export const LoadReport = z.object({
  elapsedMs: z.number(),
  firstTokenMs: z.array(z.number()),
  failures: z.number().int(),
  firstFailure: z.string(),
});
export type LoadReport = z.infer<typeof LoadReport>;

/** One whole answer in so many is decoded and measured; the others are checked for status and end alone. */
const VERIFY_EVERY = 16;

/** 560 characters: fifty such messages are the 32 KB history that the floors were measured with. */
const SENTENCE = "The quick brown fox jumps over the lazy dog and writes it into its diary. ";
const MESSAGE = SENTENCE.repeat(8).slice(0, 560);
const QUESTION = "What did we say about the fox, and why does it keep a diary?";

/** Runs a closed loop: each caller sends its next turn when its last one has ended. A failed caller reconnects. */
export async function runLoad(load: Load): Promise<LoadReport> {
  const firstTokenMs: number[] = [];
  const failures: string[] = [];
  let next = 0;
  const body = requestBody(load);
  const caller = async (connection: TurnConnection): Promise<void> => {
    for (let turn = next++; turn < load.turns; turn = next++) {
      try {
        const times = await connection.turn(requestBytes(load, turn % load.sessions, body));
        if (turn % VERIFY_EVERY === 0) verifyAnswer(times.text, load.answerChars);
        firstTokenMs.push(times.firstTokenMs);
      } catch (error) {
        failures.push(String(error));
        connection.close();
        connection = await TurnConnection.open(load.port);
      }
    }
    connection.close();
  };
  const connections = await Promise.all(
    Array.from({ length: load.callers }, () => TurnConnection.open(load.port)),
  );
  const began = performance.now();
  await Promise.all(connections.map(caller));
  const elapsedMs = performance.now() - began;
  return { elapsedMs, firstTokenMs, failures: failures.length, firstFailure: failures[0] ?? "" };
}

function requestBody(load: Load): string {
  const content = load.messages === 1 ? QUESTION : MESSAGE;
  const messages = Array.from({ length: load.messages }, () => ({ role: "user", content }));
  return JSON.stringify({ model: load.model, stream: true, messages });
}

function requestBytes(load: Load, session: number, body: string): Buffer {
  return Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:${load.port}\r\n` +
      `Authorization: Bearer ${load.token}\r\nX-Session-Id: ${load.prefix}-${session}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

const Chunk = z.object({
  choices: z.array(z.object({ delta: z.object({ content: z.string().nullish() }) })),
});

/** Throws when the streamed text is not the length that the model sent. */
function verifyAnswer(stream: string, expected: number): void {
  const frames = stream.matchAll(/^data: (\{.*\})$/gm);
  let chars = 0;
  for (const [, json = ""] of frames) {
    const { choices } = Chunk.parse(JSON.parse(json));
    chars += choices[0]?.delta.content?.length ?? 0;
  }
  if (chars !== expected) throw new Error(`answer of ${chars} characters instead of ${expected}`);
}
