import type { ModelDelta, ModelOutcome, ModelRequest, Provider } from "../../src/agent/provider.ts";
import type { ToolDefinition, WireMessage } from "../../src/domain/message.ts";

export const user = (content: string): WireMessage => ({ role: "user", content });

/** A tool without parameters. */
export const tool = (name: string): ToolDefinition => ({
  name,
  description: `does ${name}`,
  parameters: { type: "object", properties: {} },
});

/** The request for a conversation; a text is one user message. */
export function modelRequest(
  conversation: string | readonly WireMessage[],
  rest: Partial<Omit<ModelRequest, "messages">> = {},
): ModelRequest {
  const messages = typeof conversation === "string" ? [user(conversation)] : conversation;
  return {
    system: ["You are a test."],
    messages: messages.map((message) => ({ wire: JSON.stringify(message), extra: null })),
    tools: [],
    options: {},
    traceId: "0af7651916cd43dd8448eb211c80319c",
    ...rest,
  };
}

export interface Asked {
  readonly outcome: ModelOutcome;
  readonly deltas: readonly ModelDelta[];
  /** The text deltas, joined. */
  readonly said: string;
}

/** Asks once and keeps the deltas. */
export async function ask(
  provider: Provider,
  request: ModelRequest,
  signal: AbortSignal = new AbortController().signal,
): Promise<Asked> {
  const deltas: ModelDelta[] = [];
  const outcome = await provider.complete(request, (delta) => deltas.push(delta), signal);
  const said = deltas.map(({ kind, text }) => (kind === "text" ? text : "")).join("");
  return { outcome, deltas, said };
}
