import type { Principal } from "../domain/ids.ts";
import type { AssistantMessage, ToolMessage, WireMessage } from "../domain/message.ts";
import type { StoredStep } from "../store/ports.ts";
import { invalid } from "./errors.ts";
import type { GatewayStore } from "./ports.ts";

/**
 * Which messages of a request become the input of its run. Both ways hold one invariant: every tool call in
 * what the model sees is followed by exactly one result, and no result stands without its call.
 */
export interface RunMessages {
  readonly messages: readonly WireMessage[];
  readonly system: readonly string[];
}

/** What the model reads where a client went on without answering a call. */
export const NOT_ANSWERED = "[not answered: the client went on without a result for this call]";
/** A server call of a stored step that has no result: its run was cut off. */
const INTERRUPTED = "[interrupted: it may or may not have taken effect]";
/** Tool calls of a conversation that are looked up in the store, latest first; the store keeps steps for a day. */
const MOST_LOOKUPS = 64;

/**
 * Stateful: the server's history counts, so only what follows the request's last assistant message is new.
 * `open` are the calls that the session's client was asked to answer.
 */
export function statefulMessages(messages: readonly WireMessage[], open: readonly string[]): RunMessages {
  const start = messages.findLastIndex((message) => message.role === "assistant") + 1;
  const answers = new Map<string, ToolMessage>();
  const said: WireMessage[] = [];
  for (const [offset, message] of messages.slice(start).entries()) {
    if (message.role === "user") said.push(message);
    if (message.role !== "tool") continue;
    const at = `messages[${start + offset}].tool_call_id`;
    if (!open.includes(message.tool_call_id)) throw invalid(at, "the session has no open call with this id");
    if (answers.has(message.tool_call_id)) throw invalid(at, "answers the same call twice");
    answers.set(message.tool_call_id, message);
  }
  if (said.length === 0 && answers.size === 0) {
    throw invalid("messages", "no user or tool message follows the last assistant message");
  }
  const results = open.map((id) => answers.get(id) ?? notAnswered(id));
  return { messages: [...results, ...said], system: systemTexts(messages) };
}

/**
 * Stateless: the request is the conversation. Our own call ids lead back to the step that made them, so that
 * what the server's tools did in the same run is restored before the client's results.
 */
export async function statelessMessages(
  messages: readonly WireMessage[],
  steps: StepLookup,
): Promise<RunMessages> {
  const start = messages.findIndex((message) => message.role !== "system");
  if (start < 0) throw invalid("messages", "holds nothing but system messages");
  const restored = await findSteps(messages, steps);
  const input: WireMessage[] = [];
  for (let index = start; index < messages.length;) {
    const message = messages[index];
    index += 1;
    if (message === undefined) break;
    if (message.role === "tool") {
      throw invalid(`messages[${index - 1}].tool_call_id`, "no tool call with this id directly precedes it");
    }
    if (message.role !== "assistant" || message.tool_calls === undefined) {
      input.push(message);
      continue;
    }
    const answers = takeAnswers(messages, index, message);
    index += answers.size;
    input.push(...(restored.get(message)?.(answers) ?? paired(message, answers)));
  }
  return { messages: input, system: systemTexts(messages.slice(0, start)) };
}

export interface StepLookup {
  readonly steps: GatewayStore["steps"];
  readonly principal: Principal;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

type Answers = ReadonlyMap<string, ToolMessage>;

/** The results that follow an assistant message at once; each must answer one of its calls. */
function takeAnswers(messages: readonly WireMessage[], from: number, asked: AssistantMessage): Answers {
  const open = new Set((asked.tool_calls ?? []).map((call) => call.id));
  if (open.size !== asked.tool_calls?.length) {
    throw invalid(`messages[${from - 1}].tool_calls`, "two calls have the same id");
  }
  const answers = new Map<string, ToolMessage>();
  for (let index = from; index < messages.length; index += 1) {
    const message = messages[index];
    if (message?.role !== "tool") break;
    if (!open.delete(message.tool_call_id)) {
      throw invalid(`messages[${index}].tool_call_id`, "answers no open call of the message before it");
    }
    answers.set(message.tool_call_id, message);
  }
  return answers;
}

const paired = (asked: AssistantMessage, answers: Answers): readonly WireMessage[] => [
  asked,
  ...(asked.tool_calls ?? []).map((call) => answers.get(call.id) ?? notAnswered(call.id)),
];

/** For each assistant message that one of our runs produced: how its whole part of the history reads. */
async function findSteps(
  messages: readonly WireMessage[],
  lookup: StepLookup,
): Promise<ReadonlyMap<WireMessage, (answers: Answers) => readonly WireMessage[]>> {
  const found = new Map<WireMessage, (answers: Answers) => readonly WireMessage[]>();
  const asking = messages.filter(
    (message) => message.role === "assistant" && message.tool_calls !== undefined,
  );
  for (const message of asking.slice(-MOST_LOOKUPS)) {
    const ids = message.role === "assistant" ? (message.tool_calls ?? []).map((call) => call.id) : [];
    const hit = await lookup.steps.findByCall(lookup.principal, ids[0] ?? "", lookup.at);
    if (hit === null || !ids.every((id) => hit.step.calls.some((call) => call.callId === id))) continue;
    const all = await lookup.steps.list(hit.runId);
    const earlier = all.filter((step) => step.step < hit.step.step);
    found.set(message, (answers) => [...earlier, hit.step].flatMap((step) => replay(step, answers)));
  }
  return found;
}

/** A stored step with its results in call order: the server's from the store, the client's from the request. */
function replay(step: StoredStep, answers: Answers): readonly WireMessage[] {
  const results = step.calls
    .toSorted((a, b) => a.index - b.index)
    .map((call): WireMessage => {
      if (call.client) return answers.get(call.callId) ?? notAnswered(call.callId);
      return { role: "tool", tool_call_id: call.callId, content: call.result?.text ?? INTERRUPTED };
    });
  return [storedMessage(step.wire), ...results];
}

/** The store holds wire JSON that this process has written. */
const storedMessage = (wire: string): WireMessage => JSON.parse(wire) as AssistantMessage;

const notAnswered = (id: string): ToolMessage => ({ role: "tool", tool_call_id: id, content: NOT_ANSWERED });

const systemTexts = (messages: readonly WireMessage[]): readonly string[] =>
  messages.flatMap((message) => (message.role === "system" ? [message.content] : []));
