import { BeamclawError } from "../../domain/error-catalogue.ts";
import { asId, type MessageId } from "../../domain/ids.ts";
import { noUsage } from "../../domain/message.ts";
import type { Run, RunInput } from "../../domain/run.ts";
import type { AcceptRun, NewRun } from "../ports.ts";
import { attachmentsOf, type EncodedMessage, encodeMessage } from "./wire.ts";

/** `AcceptRun` with its JSON made and its attachments counted, on the caller's thread. */
export interface EncodedAccept extends Omit<AcceptRun, "run" | "messageIds"> {
  readonly run: Omit<NewRun, "input">;
  /** The input as JSON, without its messages. */
  readonly input: string;
  readonly messages: readonly EncodedMessage[];
  readonly attachments: readonly string[];
}

/** Messages of an ephemeral run never join a history. */
const unused = asId<MessageId>("");

export function encodeAccept(request: AcceptRun, input: RunInput): EncodedAccept {
  const { idempotency, start, limits, at, messageIds } = request;
  const { input: _whole, ...run } = request.run;
  const { messages, ...rest } = input;
  const encoded = messages.map((message, index) => {
    const id = messageIds[index] ?? (run.ephemeral ? unused : undefined);
    if (id === undefined) throw new BeamclawError("internal", "store: a message of the input has no id");
    return encodeMessage(id, message);
  });
  const attachments = [...new Set(messages.flatMap(attachmentsOf))];
  return { run, input: JSON.stringify(rest), messages: encoded, attachments, idempotency, start, limits, at };
}

/** The run as the writer has just stored it; reading it back would cost a query and tell nothing new. */
export function newRun(
  { run, idempotency, at }: AcceptRun,
  input: RunInput,
  kind: "started" | "queued",
): Run {
  const { id, sessionId, principal, agent, ephemeral } = run;
  const started = kind === "started";
  return {
    id,
    sessionId,
    principal,
    agent,
    kind: "chat",
    state: started ? "running" : "queued",
    ephemeral,
    keyed: idempotency !== null,
    attempt: started ? 1 : 0,
    input,
    createdAt: at,
    startedAt: started ? at : null,
    endedAt: null,
    activeMs: 0,
    finishReason: null,
    output: null,
    clientCalls: [],
    error: null,
    usage: noUsage,
    approvalId: null,
  };
}
