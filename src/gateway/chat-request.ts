import type { ContentPart, ToolDefinition, WireMessage } from "../domain/message.ts";
import type { ModelOptions } from "../domain/run.ts";
import { Unreachable } from "../kernel/errors.ts";
import { type ChatBody, type ChatBodyMessage, chatSchema } from "./chat-schema.ts";
import { invalid } from "./errors.ts";
import { parseBody } from "./validation.ts";

/** A chat request after its shape has been checked. Empty strings and nulls have become absences. */
export interface ChatRequest {
  /** The agent that `agent_id` or `model` names; null where neither does. */
  readonly agent: string | null;
  readonly session: string | null;
  readonly user: string | null;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** One to one with the request's `messages`, so that an index names the caller's message. */
  readonly messages: readonly WireMessage[];
  readonly options: ModelOptions;
  readonly tools: readonly ToolDefinition[];
}

const MODEL_PREFIX = "beamclaw/";

/** Throws `invalid_json` or `invalid_request`. */
export function parseChatRequest(json: unknown): ChatRequest {
  const body = parseBody(chatSchema, json);
  const tools = (body.tools ?? []).map((tool) => toolOf(tool.function));
  checkTools(body, tools);
  return {
    agent: named(body.agent_id) ?? agentOfModel(body.model),
    session: named(body.session_id),
    user: named(body.user_id),
    stream: body.stream ?? false,
    includeUsage: body.stream_options?.include_usage ?? false,
    messages: body.messages.map(wireOf),
    options: optionsOf(body),
    tools,
  };
}

export const named = (text: string | null | undefined): string | null => (text ? text : null);

/** Clients may be hard-wired to some vendor's model: names that are not ours mean the default agent. */
function agentOfModel(model: string | null | undefined): string | null {
  return model?.startsWith(MODEL_PREFIX) === true ? model.slice(MODEL_PREFIX.length) : null;
}

export const modelOf = (agent: string): string => MODEL_PREFIX + agent;

function wireOf(message: ChatBodyMessage): WireMessage {
  switch (message.role) {
    case "system":
    case "developer": // the newer name of the same thing
      return { role: "system", content: textOf(message.content) };
    case "user":
      return {
        role: "user",
        content:
          typeof message.content === "string" ? message.content.toWellFormed() : message.content.map(partOf),
        ...(message.name && { name: message.name }),
      };
    case "assistant": {
      const calls = (message.tool_calls ?? []).map((call) => ({ ...call, type: "function" as const }));
      return {
        role: "assistant",
        content: message.content === null || message.content === undefined ? null : textOf(message.content),
        ...(calls.length > 0 && { tool_calls: calls }),
      };
    }
    case "tool":
      return { role: "tool", tool_call_id: message.tool_call_id, content: textOf(message.content) };
    default:
      throw new Unreachable(message);
  }
}

type UserPart = Exclude<Extract<ChatBodyMessage, { role: "user" }>["content"], string>[number];

function partOf(part: UserPart): ContentPart {
  if (part.type === "text") return { type: "text", text: part.text.toWellFormed() };
  const { url, detail } = part.image_url;
  return { type: "image_url", image_url: { url, ...(detail && { detail }) } };
}

type TextPart =
  { readonly type: "text"; readonly text: string } | { readonly type: "refusal"; readonly refusal: string };

/**
 * Halves of surrogate pairs, which clients leave when they cut texts, become U+FFFD: strict models refuse
 * them, and once in a history they would be refused with every later turn.
 */
const textOf = (content: string | readonly TextPart[]): string =>
  (typeof content === "string"
    ? content
    : content.map((part) => (part.type === "text" ? part.text : part.refusal)).join("")
  ).toWellFormed();

type ToolBody = NonNullable<ChatBody["tools"]>[number]["function"];

const toolOf = ({ name, description, parameters }: ToolBody): ToolDefinition => ({
  name,
  description: description ?? "",
  parameters: parameters ?? { type: "object", properties: {} },
});

function checkTools(body: ChatBody, tools: readonly ToolDefinition[]): void {
  const names = new Set<string>();
  for (const [index, { name }] of tools.entries()) {
    if (names.has(name)) throw invalid(`tools[${index}].function.name`, `${name} is declared twice`);
    names.add(name);
  }
  const choice = body.tool_choice;
  if (typeof choice === "object" && choice !== null && !names.has(choice.function.name)) {
    throw invalid("tool_choice.function.name", `${choice.function.name} is not among tools`);
  }
}

function optionsOf(body: ChatBody): ModelOptions {
  const maxTokens = body.max_completion_tokens ?? body.max_tokens ?? undefined;
  const stop = typeof body.stop === "string" ? [body.stop] : (body.stop ?? []);
  return {
    ...given("temperature", body.temperature),
    ...given("topP", body.top_p),
    ...given("maxTokens", maxTokens),
    ...(stop.length > 0 && { stop }),
    ...given("responseFormat", body.response_format),
    ...given("toolChoice", body.tool_choice),
    ...given("parallelToolCalls", body.parallel_tool_calls),
    ...given("seed", body.seed),
  };
}

/** The option, or nothing: absent options stay absent all the way to the model. */
function given<K extends keyof ModelOptions, V>(key: K, value: V): { [P in K]?: NonNullable<V> } {
  const option: { [P in K]?: NonNullable<V> } = {};
  if (value !== null && value !== undefined) option[key] = value;
  return option;
}
