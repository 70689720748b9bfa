import { str, type Conversation, type Turn } from "./model-conversation.ts";
import type { Call, Step } from "./model-script.ts";

type Json = Record<string, unknown>;

/** What the server plays: bytes to write, or something that happens to the connection. */
export type Frame = string | { readonly happens: "stall" | "reset" };

export function readOpenAi(body: Json): Conversation {
  const messages = body["messages"] as Json[];
  return {
    model: str(body["model"]),
    stream: body["stream"] === true,
    includeUsage: (body["stream_options"] as Json | undefined)?.["include_usage"] === true,
    turns: messages.map(readTurn),
  };
}

function readTurn(message: Json): Turn {
  const content = message["content"];
  const text = Array.isArray(content)
    ? content.map((part: Json) => str(part["text"])).join("")
    : str(content);
  const calls = (message["tool_calls"] ?? []) as Json[];
  return {
    role: str(message["role"]),
    text,
    calls: calls.map((call) => str(call["id"])),
    results: message["role"] === "tool" ? [str(message["tool_call_id"])] : [],
  };
}

const head = (model: string, object: string): Json => ({
  id: "chatcmpl-model-server",
  object,
  created: 1_700_000_000,
  model,
});

const usageOf = (step: Step): Json => ({
  prompt_tokens: 11,
  completion_tokens: 1 + step.text.length,
  total_tokens: 12 + step.text.length,
  prompt_tokens_details: { cached_tokens: 4 },
  completion_tokens_details: { reasoning_tokens: step.reasoning.length },
});

const callObject = (call: Call, index: number, step: Step): Json => ({
  id: `call_${index}_${Buffer.from(step.line).toString("hex").slice(-8)}`,
  type: "function",
  function: { name: call.name, arguments: call.arguments },
});

/** One JSON document. */
export function openAiDocument(step: Step, { model }: Conversation): Json {
  const message: Json = { role: "assistant", content: step.text === "" ? null : step.text, refusal: null };
  if (step.calls.length > 0) {
    message["tool_calls"] = step.calls.map((call, index) => callObject(call, index, step));
  }
  const finish = step.calls.length > 0 ? "tool_calls" : "stop";
  return {
    ...head(model, "chat.completion"),
    choices: [{ index: 0, message, finish_reason: finish, logprobs: null }],
    usage: usageOf(step),
  };
}

/** The frames of a stream, one delta each. */
export function openAiFrames(step: Step, conversation: Conversation): Frame[] {
  const chunk = (delta: Json, finish: string | null = null): string =>
    event({
      ...head(conversation.model, "chat.completion.chunk"),
      choices: [{ index: 0, delta, finish_reason: finish, logprobs: null }],
    });
  const frames: Frame[] = [chunk({ role: "assistant", content: "" })];
  for (const piece of pieces(step.reasoning)) frames.push(chunk({ reasoning_content: piece }));
  for (const piece of pieces(step.text)) frames.push(chunk({ content: piece }));
  for (const [index, call] of step.calls.entries()) {
    const { id, type } = callObject(call, index, step);
    const start = { index, id, type, function: { name: call.name, arguments: "" } };
    frames.push(chunk({ tool_calls: [start] }));
    for (const piece of pieces(call.arguments)) {
      frames.push(chunk({ tool_calls: [{ index, function: { arguments: piece } }] }));
    }
  }
  if (step.kind === "nofinish") return frames;
  frames.push(chunk({}, step.calls.length > 0 ? "tool_calls" : "stop"));
  if (conversation.includeUsage) {
    const usage = usageOf(step);
    frames.push(event({ ...head(conversation.model, "chat.completion.chunk"), choices: [], usage }));
  }
  return step.kind === "nodone" ? frames : [...frames, "data: [DONE]\n\n"];
}

export const openAiEmptyFrames = ({ model }: Conversation): Frame[] => [
  event({ ...head(model, "chat.completion.chunk"), choices: [] }),
  "data: [DONE]\n\n",
];

export const openAiError = (message: string, type: string, code: string | number | null): Json => ({
  error: { message, type, param: null, code },
});

const event = (data: Json): string => `data: ${JSON.stringify(data)}\n\n`;

/** Small pieces, never inside a surrogate pair. */
export const pieces = (text: string): string[] => text.match(/\s*.{1,5}/gsu) ?? (text === "" ? [] : [text]);
