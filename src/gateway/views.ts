import type { Approval } from "../domain/approval.ts";
import type { Event } from "../domain/event.ts";
import type { WireMessage } from "../domain/message.ts";
import type { Run } from "../domain/run.ts";
import type { Paged, Session, StoredMessage } from "../store/ports.ts";
import { usageOf } from "./chat-objects.ts";

/** How the product's objects look over HTTP. Times are RFC 3339 in UTC. */

const time = (ms: number): string => new Date(ms).toISOString();
const timeOrNull = (ms: number | null): string | null => (ms === null ? null : time(ms));

export const pageView = <T, V>(page: Paged<T>, view: (item: T) => V) => ({
  data: page.data.map(view),
  next_cursor: page.nextCursor,
});

export const runView = (run: Run) => ({
  id: run.id,
  session_id: run.sessionId,
  user: run.principal,
  agent: run.agent,
  kind: run.kind,
  state: run.state,
  created_at: time(run.createdAt),
  started_at: timeOrNull(run.startedAt),
  ended_at: timeOrNull(run.endedAt),
  finish_reason: run.finishReason,
  approval_id: run.approvalId,
  error: run.error === null ? null : { code: run.error.code, message: run.error.message },
  usage: usageOf(run.usage),
  output: run.output,
});

export const sessionView = (session: Session) => ({
  id: session.id,
  user: session.principal,
  agent: session.agent,
  channel: session.channel,
  created_at: time(session.createdAt),
  updated_at: time(session.updatedAt),
  message_count: session.messageCount,
});

/** `in_context` says whether the model still sees the message: a reset or a compaction moves the start. */
export const messageView = (session: Session, message: StoredMessage) => ({
  id: message.id,
  seq: message.seq,
  run_id: message.runId,
  created_at: time(message.createdAt),
  in_context: message.seq >= session.startSeq,
  // The store holds wire JSON that this process has written.
  ...(JSON.parse(message.wire) as WireMessage),
});

export const approvalView = (approval: Approval) => ({
  id: approval.id,
  run_id: approval.runId,
  session_id: approval.sessionId,
  tool: approval.tool,
  arguments: approval.arguments,
  reason: approval.reason,
  pattern: approval.pattern,
  state: approval.state,
  decided_by: approval.decidedBy,
  created_at: time(approval.createdAt),
  decided_at: timeOrNull(approval.decidedAt),
  expires_at: time(approval.expiresAt),
});

export function eventView(event: Event) {
  const { type, ...data } = event.body;
  return {
    seq: event.seq,
    type,
    session_id: event.sessionId,
    run_id: event.runId,
    ts: time(event.ts),
    data: snakeCased(data),
  };
}

/** Our values are camelCase inside and snake_case outside, nested ones too. */
function snakeCased(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(snakeCased);
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      snakeCased(inner),
    ]),
  );
}
