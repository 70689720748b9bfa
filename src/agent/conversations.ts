import type { Approval, Decision } from "../domain/approval.ts";
import type { ErrorCode } from "../domain/error-catalogue.ts";
import type { AgentName, ApprovalId, Principal, RunId, SessionId } from "../domain/ids.ts";
import type { Run, RunInput } from "../domain/run.ts";
import type { IdempotencyKey } from "../store/ports.ts";
import type { LiveRun } from "./live-run.ts";

export interface SubmitRequest {
  /** Null for a stateless request: the run gets a session of its own that nobody else can reach. */
  readonly sessionId: SessionId | null;
  readonly principal: Principal;
  readonly agent: AgentName;
  readonly channel: string;
  readonly input: RunInput;
  readonly idempotency: IdempotencyKey | null;
  /** Whether `/yes`, `/no`, `/always` from this sender answer an open question; else they are plain text. */
  readonly mayDecide: boolean;
}

export type Submitted =
  /** Committed to disk. `live` follows the run from its first word. */
  | { readonly kind: "accepted"; readonly run: Run; readonly live: LiveRun }
  /** The Idempotency-Key's run; `live` is null where it is not in memory (ended, or waiting for a decision). */
  | { readonly kind: "replayed"; readonly run: Run; readonly live: LiveRun | null }
  /** The message answered the session's open question; `live` follows the waiting run as it goes on. */
  | { readonly kind: "decided"; readonly run: Run; readonly approval: Approval; readonly live: LiveRun }
  | {
      readonly kind: "refused";
      readonly code: ErrorCode;
      readonly message: string;
      readonly retryAfterSeconds?: number;
    };

/** The one door to conversations: every channel and route goes through it. */
export interface Conversations {
  submit(request: SubmitRequest): Promise<Submitted>;
  /** Ends the run, child processes included, within a second; resolves once the end is committed. */
  cancel(
    runId: RunId,
    reason: "user" | "superseded" | "disconnected",
  ): Promise<"cancelled" | "run_ended" | "not_found">;
  decide(
    id: ApprovalId,
    decision: Decision,
    by: string,
  ): Promise<
    | { readonly kind: "decided"; readonly approval: Approval; readonly run: Run }
    | { readonly kind: "refused"; readonly code: "not_found" | "approval_decided" }
  >;
  /** Starts the visible history afresh; `session_busy` while the session has an open run. */
  reset(sessionId: SessionId): Promise<"reset" | "not_found" | "session_busy">;
  /** The run's live side while it is queued or works in this process. */
  live(runId: RunId): LiveRun | undefined;
}
