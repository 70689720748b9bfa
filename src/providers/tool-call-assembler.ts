import { randomUUID } from "node:crypto";
import type { ModelCall, ModelRequest } from "../agent/provider.ts";
import type { ToolDefinition } from "../domain/message.ts";
import { asCount, asList, asRecord, asText, type JsonRecord } from "./json-value.ts";

interface Slot {
  readonly index: number | undefined;
  id: string | undefined;
  name: string;
  arguments: string;
}

const MAX_CALLS = 128;

/**
 * Puts the tool calls of a streamed answer together (OpenAI chat completions, `delta.tool_calls`). Servers
 * differ: the index may be missing or the same for every call, the id missing, repeated in each delta or
 * shared by two calls, the name sent once, in pieces or again and again, the arguments text or an object.
 */
export class ToolCallAssembler {
  readonly #slots: Slot[] = [];
  #size = 0;

  /** Characters of arguments so far. */
  get size(): number {
    return this.#size;
  }

  /** Takes `delta.tool_calls` (or a whole message's `tool_calls`). False: more calls than any answer has. */
  add(calls: unknown): boolean {
    for (const call of asList(calls)) {
      const record = asRecord(call);
      if (record !== undefined) this.#addOne(record);
    }
    return this.#slots.length <= MAX_CALLS;
  }

  /** The calls in order; ids may still be missing or doubled. */
  finish(): readonly DraftCall[] {
    return this.#slots.map(({ id, name, arguments: json }) => ({ id, name, arguments: json }));
  }

  #addOne(call: JsonRecord): void {
    const made = asRecord(call["function"]) ?? call;
    const id = asText(call["id"]) || undefined;
    const name = asText(made["name"]) ?? "";
    const slot = this.#slotOf(asCount(call["index"]), id, name);
    slot.id ??= id;
    // A server that repeats the name in every delta must not double it; one that sends pieces must be joined.
    if (slot.name !== name) slot.name += name;
    const json = made["arguments"];
    const piece =
      typeof json === "string" ? json : json === undefined || json === null ? "" : JSON.stringify(json);
    slot.arguments += piece;
    this.#size += piece.length;
  }

  #slotOf(index: number | undefined, id: string | undefined, name: string): Slot {
    const last = this.#slots.at(-1);
    const found =
      index === undefined
        ? id === undefined
          ? name === "" || name === last?.name
            ? last
            : undefined
          : this.#slots.find((slot) => slot.id === id)
        : this.#slots.findLast((slot) => slot.index === index);
    // Another id with a name is another call, even under an index that was used before.
    const another = found?.id !== undefined && id !== undefined && found.id !== id && name !== "";
    if (found !== undefined && !another) return found;
    const slot: Slot = { index, id, name: "", arguments: "" };
    this.#slots.push(slot);
    return slot;
  }
}

/** A call as the model made it. */
export interface DraftCall {
  readonly id: string | undefined;
  readonly name: string;
  readonly arguments: string;
}

/**
 * Makes calls fit for a history that strict APIs accept: ids are unique in the answer and in the
 * conversation, names are well-formed, arguments are never empty. Null: a call has no name at all.
 */
export function finishCalls(
  drafts: readonly DraftCall[],
  request: Pick<ModelRequest, "tools" | "messages">,
): readonly ModelCall[] | null {
  const seen = new Set<string>();
  const calls: ModelCall[] = [];
  for (const draft of drafts) {
    if (draft.name === "") return null;
    const taken = draft.id === undefined || seen.has(draft.id) || mentions(request.messages, draft.id);
    const id = taken || draft.id === undefined ? newCallId() : draft.id;
    seen.add(id);
    calls.push({
      id,
      name: wellFormed(draft.name, request.tools),
      arguments: draft.arguments.trim() === "" ? "{}" : draft.arguments,
    });
  }
  return calls;
}

export const newCallId = (): string => `call_${randomUUID().replaceAll("-", "")}`;

/** Small servers number their calls from 0 in every answer; an id that the conversation has must not come again. */
function mentions(messages: ModelRequest["messages"], id: string): boolean {
  const needle = JSON.stringify(id);
  return messages.some(({ wire }) => wire.includes(needle));
}

/** The name of no declared tool is answered with an error, but must not make the whole history invalid. */
function wellFormed(name: string, tools: readonly ToolDefinition[]): string {
  if (tools.some((tool) => tool.name === name)) return name;
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64);
}
