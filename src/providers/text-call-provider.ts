import type { ModelDelta, ModelOutcome, ModelRequest, Provider } from "../agent/provider.ts";
import { Deltas } from "./deltas.ts";
import { TextCallScanner } from "./text-call-scanner.ts";
import { finishCalls } from "./tool-call-assembler.ts";

/**
 * Reads tool calls out of the text of a model that cannot make native ones. Text that may be a call is held
 * back until that is decided, so nobody is shown the markup. Native calls win over those in the text.
 */
export class TextCallProvider implements Provider {
  readonly name: string;
  readonly model: string;
  readonly contextWindow: number;
  readonly #inner: Provider;

  constructor(inner: Provider) {
    this.name = inner.name;
    this.model = inner.model;
    this.contextWindow = inner.contextWindow;
    this.#inner = inner;
  }

  async complete(
    request: ModelRequest,
    onDelta: (delta: ModelDelta) => void,
    signal: AbortSignal,
  ): Promise<ModelOutcome> {
    if (request.tools.length === 0) return await this.#inner.complete(request, onDelta, signal);
    const deltas = new Deltas(onDelta);
    const scanner = new TextCallScanner(new Set(request.tools.map((tool) => tool.name)));
    const take = ({ kind, text }: ModelDelta): void =>
      kind === "text" ? deltas.say(scanner.push(text)) : deltas.think(text);
    const outcome = await this.#inner.complete(request, take, signal);
    if (outcome.kind === "cancelled") return outcome;
    if (outcome.kind === "failed") {
      // Where something was shown, what was held belongs to it; where nothing was, the call may be repeated.
      if (deltas.started) deltas.say(scanner.end(true).text);
      return {
        kind: "failed",
        failure: { ...outcome.failure, started: deltas.started, partial: deltas.text },
      };
    }
    const { answer } = outcome;
    const found = scanner.end(answer.calls.length > 0);
    deltas.say(found.text);
    const calls = finishCalls(found.calls, request) ?? [];
    if (calls.length === 0) return { kind: "answered", answer: { ...answer, text: deltas.text } };
    return { kind: "answered", answer: { ...answer, text: deltas.text, calls, finishReason: "tool_calls" } };
  }
}
