import { str, type Conversation, type Turn } from "./model-conversation.ts";
import type { Step } from "./model-script.ts";
import { pieces, type Frame } from "./model-wire-openai.ts";

type Json = Record<string, unknown>;

export function readAnthropic(body: Json): Conversation {
  return {
    model: str(body["model"]),
    stream: body["stream"] === true,
    includeUsage: true,
    turns: (body["messages"] as Json[]).map(readTurn),
  };
}

function readTurn(message: Json): Turn {
  const content = message["content"];
  const blocks: Json[] =
    typeof content === "string" ? [{ type: "text", text: content }] : (content as Json[]);
  const of = (type: string): Json[] => blocks.filter((block) => block["type"] === type);
  const results = of("tool_result");
  return {
    role: str(message["role"]),
    text: [...of("text").map((block) => block["text"]), ...results.map((block) => block["content"])]
      .map((part) => (typeof part === "string" ? part : JSON.stringify(part)))
      .join(""),
    calls: of("tool_use").map((block) => str(block["id"])),
    results: results.map((block) => str(block["tool_use_id"])),
  };
}

/** What the Messages API refuses beyond pairing. Null: nothing. */
export function anthropicProblem(body: Json): string | null {
  if (typeof body["max_tokens"] !== "number") return "max_tokens: Field required";
  const messages = body["messages"] as Json[];
  if (messages[0]?.["role"] !== "user") return "messages: first message must use the user role";
  for (const [index, message] of messages.entries()) {
    const role = message["role"];
    if (role !== "user" && role !== "assistant") return `messages.${index}.role: unexpected ${str(role)}`;
    if (role === messages[index - 1]?.["role"]) return `messages.${index}: roles must alternate`;
    const content = message["content"];
    const blocks: Json[] =
      typeof content === "string" ? [{ type: "text", text: content }] : (content as Json[]);
    if (blocks.length === 0) return `messages.${index}: content must not be empty`;
    const problem = blocksProblem(blocks);
    if (problem !== null) return `messages.${index}: ${problem}`;
  }
  return null;
}

function blocksProblem(blocks: readonly Json[]): string | null {
  if (blocks.some((block) => block["type"] === "text" && block["text"] === "")) {
    return "text content blocks must be non-empty";
  }
  const lastResult = blocks.findLastIndex((block) => block["type"] === "tool_result");
  if (blocks.slice(0, lastResult + 1).some((block) => block["type"] !== "tool_result")) {
    return "tool_result blocks must come first";
  }
  const thinking = blocks.find((block) => block["type"] === "thinking");
  if (thinking !== undefined && thinking["signature"] !== signature(str(thinking["thinking"]))) {
    return "Invalid `signature` in `thinking` block";
  }
  return null;
}

const signature = (thinking: string): string => `sig-${thinking.length}`;

const callId = (index: number, step: Step): string =>
  `toolu_${index}_${Buffer.from(step.line).toString("hex").slice(-8)}`;

const stopReason = (step: Step): string => (step.calls.length > 0 ? "tool_use" : "end_turn");

const head = (model: string): Json => ({ id: "msg_model_server", type: "message", role: "assistant", model });

const inputUsage = { input_tokens: 7, cache_read_input_tokens: 4, cache_creation_input_tokens: 2 };

export function anthropicDocument(step: Step, { model }: Conversation): Json {
  const content: Json[] = [];
  if (step.reasoning !== "") {
    content.push({ type: "thinking", thinking: step.reasoning, signature: signature(step.reasoning) });
  }
  if (step.text !== "") content.push({ type: "text", text: step.text });
  for (const [index, call] of step.calls.entries()) {
    content.push({
      type: "tool_use",
      id: callId(index, step),
      name: call.name,
      input: JSON.parse(call.arguments),
    });
  }
  const usage = { ...inputUsage, output_tokens: 1 + step.text.length };
  return { ...head(model), content, stop_reason: stopReason(step), stop_sequence: null, usage };
}

export function anthropicFrames(step: Step, { model }: Conversation): Frame[] {
  const message = {
    ...head(model),
    content: [],
    stop_reason: null,
    usage: { ...inputUsage, output_tokens: 1 },
  };
  const frames: Frame[] = [event("message_start", { message }), event("ping", {})];
  let index = 0;
  const block = (start: Json, deltas: readonly Json[]): void => {
    frames.push(event("content_block_start", { index, content_block: start }));
    for (const delta of deltas) frames.push(event("content_block_delta", { index, delta }));
    frames.push(event("content_block_stop", { index }));
    index += 1;
  };
  if (step.reasoning !== "") {
    block({ type: "thinking", thinking: "", signature: "" }, [
      ...pieces(step.reasoning).map((thinking) => ({ type: "thinking_delta", thinking })),
      { type: "signature_delta", signature: signature(step.reasoning) },
    ]);
  }
  if (step.text !== "") {
    const deltas = pieces(step.text).map((text) => ({ type: "text_delta", text }));
    block({ type: "text", text: "" }, deltas);
  }
  for (const [at, call] of step.calls.entries()) {
    const deltas = pieces(call.arguments).map((json) => ({ type: "input_json_delta", partial_json: json }));
    block({ type: "tool_use", id: callId(at, step), name: call.name, input: {} }, deltas);
  }
  if (step.kind === "nofinish") return frames;
  const usage = { output_tokens: 1 + step.text.length };
  frames.push(
    event("message_delta", { delta: { stop_reason: stopReason(step), stop_sequence: null }, usage }),
  );
  return step.kind === "nodone" ? frames : [...frames, event("message_stop", {})];
}

export const anthropicEmptyFrames = (): Frame[] => [event("ping", {}), event("message_stop", {})];

export const anthropicError = (message: string, type: string): Json => ({
  type: "error",
  error: { type, message },
});

const event = (type: string, data: Json): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
