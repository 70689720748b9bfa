/** Builders of what tests ask of a store, and short readings of what it then holds. */
import {
  type AgentName,
  type ApprovalId,
  asId,
  type MessageId,
  newId,
  type Principal,
  type RunId,
  type SessionId,
} from "../../src/domain/ids.ts";
import { noUsage, type WireMessage } from "../../src/domain/message.ts";
import type { RunInput } from "../../src/domain/run.ts";
import type {
  Accepted,
  AcceptRun,
  AskApproval,
  FinishRun,
  NewCall,
  RecordStep,
  Store,
} from "../../src/store/ports.ts";

export const alice = asId<Principal>("local:alice");
export const agent = asId<AgentName>("default");
export const session = asId<SessionId>("session-1");

/** Every test's clock starts here. */
export const start = 1_800_000_000_000;

export const user = (content: string): WireMessage => ({ role: "user", content });

export const toolAnswer = (callId: string, content: string): WireMessage => ({
  role: "tool",
  tool_call_id: callId,
  content,
});

export function inputOf(messages: readonly WireMessage[]): RunInput {
  const origin = { channel: "http", token: "web", interactive: true, effects: true };
  return { messages, system: [], options: { temperature: 0.5 }, clientTools: [], origin };
}

export interface AcceptOptions extends Partial<Omit<AcceptRun, "run">> {
  readonly id?: RunId;
  readonly sessionId?: SessionId;
  readonly principal?: Principal;
  readonly ephemeral?: boolean;
  readonly messages?: readonly WireMessage[];
}

export function acceptRequest(options: AcceptOptions = {}): AcceptRun {
  const { id, sessionId = session, principal = alice, ephemeral = false, ...rest } = options;
  const { messages = [user("hello")], ...more } = rest;
  const at = options.at ?? start;
  return {
    run: {
      id: id ?? newId<RunId>(at),
      sessionId,
      principal,
      agent,
      channel: "http",
      ephemeral,
      input: inputOf(messages),
    },
    idempotency: null,
    messageIds: messages.map(() => newId<MessageId>(at)),
    start: true,
    limits: { perSession: 32, total: 1_000 },
    at,
    ...more,
  };
}

/** Accepts a run that must be taken, and returns it. */
export async function accepted(store: Store, options: AcceptOptions = {}) {
  return runOf(await store.runs.accept(acceptRequest(options)));
}

export function runOf(outcome: Accepted) {
  if (outcome.kind === "refused") throw new Error(`refused: ${outcome.code}`);
  return outcome.run;
}

export const assistantWire = (content: string): string => JSON.stringify({ role: "assistant", content });

export function finishRequest(
  run: { readonly id: RunId; readonly attempt: number },
  more: Partial<FinishRun> = {},
): FinishRun {
  const at = more.at ?? start + 1_000;
  const output = more.output === undefined ? "hi there" : more.output;
  return {
    runId: run.id,
    attempt: run.attempt,
    state: "completed",
    finishReason: "stop",
    message: output === null ? null : { id: newId<MessageId>(at), wire: assistantWire(output), extra: null },
    output,
    error: null,
    reason: "",
    usage: noUsage,
    activeMs: 900,
    unsettledResult: "interrupted",
    at,
    ...more,
  };
}

export function call(callId: string, more: Partial<NewCall> = {}): NewCall {
  return {
    callId,
    tool: "bash",
    effect: "external",
    client: false,
    rawArguments: `{"command":"echo ${callId}"}`,
    scrubbedArguments: `{"command":"echo ${callId}"}`,
    result: null,
    started: false,
    ...more,
  };
}

export function stepOf(
  run: { readonly id: RunId; readonly attempt: number },
  calls: readonly NewCall[],
  more: Partial<RecordStep> = {},
): RecordStep {
  const wire = JSON.stringify({
    role: "assistant",
    content: null,
    tool_calls: calls.map(({ callId: id, tool: name, scrubbedArguments }) => ({
      id,
      type: "function",
      function: { name, arguments: scrubbedArguments },
    })),
  });
  const at = more.at ?? start + 100;
  return {
    runId: run.id,
    attempt: run.attempt,
    step: 0,
    messageId: newId<MessageId>(at),
    wire,
    extra: null,
    calls,
    usage: noUsage,
    at,
    ...more,
  };
}

export const keyOf = (run: { readonly id: RunId; readonly attempt: number }, index = 0, step = 0) => ({
  runId: run.id,
  attempt: run.attempt,
  step,
  index,
});

export function question(
  run: { readonly id: RunId; readonly attempt: number },
  more: Partial<AskApproval> = {},
): AskApproval {
  const at = more.at ?? start + 200;
  return {
    id: newId<ApprovalId>(at),
    call: keyOf(run),
    reason: "bash changes things",
    pattern: "echo",
    activeMs: 50,
    expiresAt: at + 900_000,
    at,
    ...more,
  };
}

/** The visible history as parsed JSON. */
export async function historyOf(store: Store, sessionId: SessionId = session): Promise<WireMessage[]> {
  const messages = await store.sessions.messages(sessionId, -1, 1_000);
  return messages.map(({ wire }) => JSON.parse(wire));
}

/** Types of a session's events, in order; checks on the way that seqs are dense. */
export async function eventTypesOf(store: Store, sessionId: SessionId = session): Promise<string[]> {
  const events = await store.events.after(sessionId, 0, { limit: 1_000 });
  events.forEach((event, index) => {
    if (event.seq !== index + 1) throw new Error(`event ${index + 1} has seq ${event.seq}`);
  });
  return events.map((event) => event.body.type);
}

/** A short form of a history: `user`, `tool:<call>`, `assistant` or `assistant(<calls>)`. */
export function outline(messages: readonly WireMessage[]): string[] {
  return messages.map((message) => {
    if (message.role === "tool") return `tool:${message.tool_call_id}`;
    if (message.role !== "assistant" || message.tool_calls === undefined) return message.role;
    return `assistant(${message.tool_calls.map(({ id }) => id).join(",")})`;
  });
}
