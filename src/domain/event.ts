import type { Decision } from "./approval.ts";
import type { ApprovalId, MessageId, RunId, SessionId } from "./ids.ts";
import type { FinishReason, RunError } from "./run.ts";

/**
 * Something that happened. Events are values that the store inserts in the transaction of the state change
 * itself; `seq` is dense within a session. Deltas of a streamed answer are not events.
 */
export interface Event {
  readonly sessionId: SessionId;
  readonly seq: number;
  readonly runId: RunId | null;
  /** Milliseconds since the epoch. */
  readonly ts: number;
  readonly body: EventBody;
}

export type EventBody =
  | { readonly type: "run.queued" }
  | { readonly type: "run.started"; readonly attempt: number }
  | { readonly type: "run.waiting"; readonly approvalId: ApprovalId }
  | { readonly type: "run.resumed"; readonly attempt: number }
  | {
      readonly type: "run.completed";
      readonly finishReason: FinishReason;
      /** History seq of the final message; null in stateless runs. */
      readonly messageSeq: number | null;
    }
  | { readonly type: "run.failed"; readonly error: RunError }
  | { readonly type: "run.cancelled"; readonly reason: string }
  | { readonly type: "run.expired"; readonly reason: string }
  | {
      readonly type: "message.added";
      readonly messageId: MessageId;
      readonly messageSeq: number;
      readonly role: "system" | "user" | "assistant" | "tool";
    }
  | { readonly type: "tool.requested"; readonly step: number; readonly callId: string; readonly tool: string }
  | { readonly type: "tool.started"; readonly step: number; readonly callId: string; readonly tool: string }
  | {
      readonly type: "tool.finished";
      readonly step: number;
      readonly callId: string;
      readonly tool: string;
      readonly ok: boolean;
    }
  | {
      readonly type: "approval.requested";
      readonly approvalId: ApprovalId;
      readonly tool: string;
      readonly callId: string;
    }
  | {
      readonly type: "approval.resolved";
      readonly approvalId: ApprovalId;
      readonly outcome: Decision | "expired" | "withdrawn";
      readonly by: string;
    }
  | { readonly type: "session.reset" };

export type EventType = EventBody["type"];

export const eventTypes = [
  "run.queued",
  "run.started",
  "run.waiting",
  "run.resumed",
  "run.completed",
  "run.failed",
  "run.cancelled",
  "run.expired",
  "message.added",
  "tool.requested",
  "tool.started",
  "tool.finished",
  "approval.requested",
  "approval.resolved",
  "session.reset",
] as const satisfies readonly EventType[];
