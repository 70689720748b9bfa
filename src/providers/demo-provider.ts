import type { ModelDelta, ModelOutcome, ModelRequest, Provider } from "../agent/provider.ts";
import type { WireMessage } from "../domain/message.ts";
import { sleep, type Clock } from "../kernel/clock.ts";
import { Deltas } from "./deltas.ts";
import { demoReply } from "./demo-rules.ts";
import { finishCalls } from "./tool-call-assembler.ts";

export interface DemoOptions {
  readonly name: string;
  /** Milliseconds between two words; 0 streams as fast as it is read. */
  readonly wordMs: number;
  /** Tokens. */
  readonly contextWindow: number;
}

/**
 * The offline demo: needs no key and no network, streams word by word like a real model and drives the whole
 * loop. What it says is decided by `demoReply`.
 */
export class DemoProvider implements Provider {
  readonly name: string;
  readonly model = "demo";
  readonly contextWindow: number;
  readonly #wordMs: number;
  readonly #clock: Clock;

  constructor({ name, wordMs, contextWindow }: DemoOptions, clock: Clock) {
    this.name = name;
    this.contextWindow = contextWindow;
    this.#wordMs = wordMs;
    this.#clock = clock;
  }

  async complete(
    request: ModelRequest,
    onDelta: (delta: ModelDelta) => void,
    signal: AbortSignal,
  ): Promise<ModelOutcome> {
    const messages = request.messages.map(({ wire }) => readMessage(wire));
    const { text, calls } = demoReply(messages, request);
    const deltas = new Deltas(onDelta);
    for (const word of text.match(/\s*\S+/g) ?? []) {
      if (!(await this.#pace(signal))) return { kind: "cancelled" };
      deltas.say(word);
    }
    if (signal.aborted) return { kind: "cancelled" };
    const drafts = calls.map((call) => ({
      id: undefined,
      name: call.tool,
      arguments: JSON.stringify(call.arguments),
    }));
    return {
      kind: "answered",
      answer: {
        text: deltas.text,
        calls: finishCalls(drafts, request) ?? [],
        finishReason: calls.length > 0 ? "tool_calls" : "stop",
        usage: { promptTokens: promptTokens(request), completionTokens: Math.ceil(text.length / 4) },
      },
    };
  }

  /** Lets the event loop turn between two words, so that a cancellation is heard. False: it was. */
  async #pace(signal: AbortSignal): Promise<boolean> {
    if (this.#wordMs === 0) await new Promise(setImmediate);
    else await sleep(this.#clock, this.#wordMs, signal).catch(() => undefined);
    return !signal.aborted;
  }
}

/** The store's own bytes: their shape is known. */
const readMessage = (wire: string): WireMessage => JSON.parse(wire) as WireMessage;

/** Roughly, at four bytes a token. */
function promptTokens({ system, messages }: ModelRequest): number {
  const bytes = messages.reduce((sum, { wire }) => sum + wire.length, system.join("").length);
  return Math.ceil(bytes / 4);
}
