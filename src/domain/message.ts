/**
 * Messages in the shape that goes over the wire to an OpenAI-compatible provider. The store keeps each as
 * ready-made JSON bytes and never parses it on the way to the model.
 */
export type WireMessage = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

export interface SystemMessage {
  readonly role: "system";
  readonly content: string;
}

export interface UserMessage {
  readonly role: "user";
  readonly content: string | readonly ContentPart[];
  readonly name?: string;
}

export interface AssistantMessage {
  readonly role: "assistant";
  readonly content: string | null;
  readonly tool_calls?: readonly WireToolCall[];
}

export interface ToolMessage {
  readonly role: "tool";
  readonly tool_call_id: string;
  readonly content: string;
}

export type ContentPart = TextPart | ImagePart;

export interface TextPart {
  readonly type: "text";
  readonly text: string;
}

/** `url` is http(s), a data URL, or `attachment:<id>` once the store has taken the data URL's bytes out. */
export interface ImagePart {
  readonly type: "image_url";
  readonly image_url: { readonly url: string; readonly detail?: "auto" | "low" | "high" };
}

export interface WireToolCall {
  readonly id: string;
  readonly type: "function";
  /** `arguments` is JSON text, as the model wrote it (scrubbed once it is in a history). */
  readonly function: { readonly name: string; readonly arguments: string };
}

/** What a tool looks like to a model; `parameters` is a JSON Schema object. */
export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** Tokens, as the provider reported them. */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens?: number;
  readonly reasoningTokens?: number;
}

export const noUsage: Usage = { promptTokens: 0, completionTokens: 0 };

export function addUsage(a: Usage, b: Usage): Usage {
  const cached = (a.cachedTokens ?? 0) + (b.cachedTokens ?? 0);
  const reasoning = (a.reasoningTokens ?? 0) + (b.reasoningTokens ?? 0);
  return {
    promptTokens: a.promptTokens + b.promptTokens,
    completionTokens: a.completionTokens + b.completionTokens,
    ...(cached > 0 && { cachedTokens: cached }),
    ...(reasoning > 0 && { reasoningTokens: reasoning }),
  };
}

/** The text of a message, images left out; "" where it has none. */
export function textOf(content: WireMessage["content"]): string {
  if (content === null) return "";
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}
