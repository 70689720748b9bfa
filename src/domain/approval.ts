import type { ApprovalId, RunId, SessionId } from "./ids.ts";

export type ApprovalState = "pending" | "approved" | "denied" | "expired" | "withdrawn";
/** `always` approves this call and stores a grant for its pattern in the session. */
export type Decision = "approve" | "deny" | "always";

/** A durable question to a person about one tool call. */
export interface Approval {
  readonly id: ApprovalId;
  readonly runId: RunId;
  readonly sessionId: SessionId;
  readonly callId: string;
  readonly tool: string;
  /** Scrubbed JSON text. */
  readonly arguments: string;
  /** Why it is asked, and what `always` would allow (null: the tool cannot be allowed for good). */
  readonly reason: string;
  readonly pattern: string | null;
  readonly state: ApprovalState;
  /** Principal or `system` (expiry, withdrawal); null while pending. */
  readonly decidedBy: string | null;
  readonly createdAt: number;
  readonly decidedAt: number | null;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** A standing permission of one session: calls of `tool` whose pattern equals `pattern`. */
export interface Grant {
  readonly tool: string;
  readonly pattern: string;
}
