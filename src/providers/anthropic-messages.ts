import type { ModelRequest } from "../agent/provider.ts";
import type { AssistantMessage, ContentPart, UserMessage, WireMessage } from "../domain/message.ts";
import { asList, asRecord, isRecord, parseJson, type JsonRecord } from "./json-value.ts";

/*
 * The conversation in the shape of Anthropic's Messages API: turns alternate between user and assistant, a
 * turn is a list of blocks, tool results are blocks of the user and come first, nothing is empty.
 */
export type Block = Record<string, unknown>;

export interface Turn {
  readonly role: "user" | "assistant";
  readonly content: Block[];
}

/** Marks what `extra` holds as ours: signed thinking of another provider would be refused. */
export const EXTRA_KIND = "anthropic";

export function anthropicTurns(messages: ModelRequest["messages"]): readonly Turn[] {
  const turns: Turn[] = [];
  for (const { wire, extra } of messages) {
    // The store's own bytes: their shape is known.
    const message = JSON.parse(wire) as WireMessage;
    const role = message.role === "assistant" ? "assistant" : "user";
    const blocks = message.role === "assistant" ? assistantBlocks(message, extra) : userBlocks(message);
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else turns.push({ role, content: [...blocks] });
  }
  if (turns[0]?.role !== "user") turns.unshift({ role: "user", content: [] });
  for (const { content } of turns) {
    content.sort((a, b) => rank(a) - rank(b)); // stable: the order within a kind stays
    if (content.length === 0) content.push(text("(no text)"));
  }
  return turns;
}

/** Tool results lead a user's turn, thinking leads the assistant's and its calls end it. */
function rank({ type }: Block): number {
  if (type === "tool_result" || type === "thinking" || type === "redacted_thinking") return 0;
  return type === "tool_use" ? 2 : 1;
}

const text = (content: string): Block => ({ type: "text", text: content });

/** Blank texts are refused by the API. */
const texts = (content: string): Block[] => (content.trim() === "" ? [] : [text(content)]);

function userBlocks(message: Exclude<WireMessage, AssistantMessage>): Block[] {
  if (message.role !== "tool") return contentBlocks(message.content);
  const { tool_call_id: id, content } = message;
  return [{ type: "tool_result", tool_use_id: wellFormedId(id), content: texts(content) }];
}

function contentBlocks(content: UserMessage["content"]): Block[] {
  return typeof content === "string" ? texts(content) : content.flatMap(partBlocks);
}

function partBlocks(part: ContentPart): Block[] {
  if (part.type === "text") return texts(part.text);
  const { url } = part.image_url;
  const [, mime, data] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? [];
  if (mime !== undefined) return [{ type: "image", source: { type: "base64", media_type: mime, data } }];
  if (/^https?:/i.test(url)) return [{ type: "image", source: { type: "url", url } }];
  return [text("[image not available]")];
}

function assistantBlocks(
  { content, tool_calls: calls = [] }: AssistantMessage,
  extra: string | null,
): Block[] {
  return [
    ...thinkingBlocks(extra),
    ...texts(content ?? ""),
    ...calls.map((call) => ({
      type: "tool_use",
      id: wellFormedId(call.id),
      name: call.function.name,
      input: toolInput(call.function.arguments),
    })),
  ];
}

/** The thinking that came with this message, unchanged: its signature covers it. */
function thinkingBlocks(extra: string | null): Block[] {
  const kept = extra === null ? undefined : asRecord(parseJson(extra));
  if (kept?.["kind"] !== EXTRA_KIND) return [];
  return asList(kept["thinking"]).filter(isRecord);
}

/** Arguments as an object, which the API insists on; malformed ones stay readable under `raw`. */
function toolInput(json: string): JsonRecord {
  return asRecord(parseJson(json)) ?? { raw: json };
}

/** The API takes letters, digits, `_` and `-`; ids of other providers may hold more. */
const wellFormedId = (id: string): string => id.replaceAll(/[^a-zA-Z0-9_-]/g, "_");
