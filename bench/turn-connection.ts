/** One keep-alive connection that takes a caller's turns, one after another, with a stamp at what a caller sees first. */
import { createConnection, type Socket } from "node:net";
import { performance } from "node:perf_hooks";
import { ResponseReader } from "./response-reader.ts";

/** A delta with text in it; the role-only frame that opens a stream is not yet an answer. */
const FIRST_TEXT = /"content":"[^"]/;
const END = "data: [DONE]\n\n";

/** A turn that came back whole. Milliseconds since the request was written. */
export interface TurnTimes {
  readonly firstTokenMs: number;
  readonly totalMs: number;
  readonly text: string;
}

export class TurnConnection {
  readonly #socket: Socket;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Connects to loopback. Rejects when nobody listens. */
  static async open(port: number): Promise<TurnConnection> {
    const socket = createConnection({ host: "127.0.0.1", port, noDelay: true });
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve).once("error", reject);
    });
    socket.removeAllListeners("error").on("error", () => undefined); // "close" always follows and rejects the turn
    return new TurnConnection(socket);
  }

  /** Sends one request and reads its stream. Rejects on any status but 200, a missing `[DONE]`, or a closed socket. */
  turn(request: Buffer): Promise<TurnTimes> {
    const socket = this.#socket;
    const reader = new ResponseReader();
    return new Promise((resolve, reject) => {
      const began = performance.now();
      let firstTokenMs = Number.NaN;
      const settle = (act: () => void): void => {
        socket.off("data", onData).off("close", onClose);
        act();
      };
      const onClose = (): void => settle(() => reject(new Error("connection closed in mid-turn")));
      const onData = (bytes: Buffer): void => {
        try {
          reader.push(bytes);
          const now = performance.now();
          if (Number.isNaN(firstTokenMs) && FIRST_TEXT.test(reader.text)) firstTokenMs = now - began;
          if (reader.done) settle(() => resolve(complete(reader, firstTokenMs, now - began)));
        } catch (error) {
          settle(() => reject(error instanceof Error ? error : new Error(String(error))));
        }
      };
      socket.on("data", onData).once("close", onClose);
      socket.write(request);
    });
  }

  /** Resets the connection, so that thousands of them leave no TIME_WAIT behind. */
  close(): void {
    this.#socket.resetAndDestroy();
  }
}

/** Throws with the beginning of what came instead of a finished stream. */
function complete(reader: ResponseReader, firstTokenMs: number, totalMs: number): TurnTimes {
  if (reader.status !== 200 || !reader.text.endsWith(END) || Number.isNaN(firstTokenMs)) {
    throw new Error(`status ${reader.status}: ${reader.text.slice(-300)}`);
  }
  return { firstTokenMs, totalMs, text: reader.text };
}
