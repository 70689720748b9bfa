import type { AgentName, ApprovalId, Principal, RunId, SessionId } from "./ids.ts";
import type { ToolDefinition, Usage, WireMessage } from "./message.ts";

/** A run is one unit of work of a session; issues to come add further kinds. */
export type RunKind = "chat";

export type OpenRunState = "queued" | "running" | "waiting" | "retrying";
export type EndedRunState = "completed" | "failed" | "cancelled" | "expired";
export type RunState = OpenRunState | EndedRunState;

export const isEnded = (state: RunState): state is EndedRunState =>
  state === "completed" || state === "failed" || state === "cancelled" || state === "expired";

/** Where a run came from; decides who may answer its questions and where its answer goes. */
export interface Origin {
  /** Fixed tag: `http`, `socket`, later `websocket`, `telegram`, `webhook` … */
  readonly channel: string;
  /** Name of the token that asked; null on the local socket. */
  readonly token: string | null;
  /** Whether somebody can answer an approval here: false in stateless requests. */
  readonly interactive: boolean;
  /** Whether tools with external effects may be offered at all. */
  readonly effects: boolean;
}

/** Options of one request that go to the model unchanged. */
export interface ModelOptions {
  readonly temperature?: number;
  readonly topP?: number;
  readonly maxTokens?: number;
  readonly stop?: readonly string[];
  readonly responseFormat?: unknown;
  readonly toolChoice?: unknown;
  readonly parallelToolCalls?: boolean;
  readonly seed?: number;
}

/** Everything a run needs to start, or to start again after a crash: stored as one JSON blob. */
export interface RunInput {
  /** Entries that join the history when the run starts (stateless: the whole conversation). */
  readonly messages: readonly WireMessage[];
  /** System messages of the request; they apply to this run only. */
  readonly system: readonly string[];
  readonly options: ModelOptions;
  /** Tools that the client runs itself. */
  readonly clientTools: readonly ToolDefinition[];
  readonly origin: Origin;
}

export interface RunError {
  /** A code of the catalogue (`domain/error-catalogue.ts`). */
  readonly code: string;
  /** Scrubbed, for people. */
  readonly message: string;
  /** Seconds, where the upstream named them. */
  readonly retryAfterSeconds?: number;
}

/** Why a completed run ended; null while it has not. */
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

export interface Run {
  readonly id: RunId;
  readonly sessionId: SessionId;
  readonly principal: Principal;
  readonly agent: AgentName;
  readonly kind: RunKind;
  readonly state: RunState;
  /** A stateless run: its conversation is its input, nobody else can reach its session. */
  readonly ephemeral: boolean;
  /** Accepted under an Idempotency-Key, so a retry may come back for its outcome. */
  readonly keyed: boolean;
  /** Counts activations. A write that carries an older number is refused: the fence against zombies. */
  readonly attempt: number;
  readonly input: RunInput;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** Milliseconds this run has spent working, waiting for people not counted. */
  readonly activeMs: number;
  readonly finishReason: FinishReason | null;
  /** The final text; of a failed run, what had been said until then. */
  readonly output: string | null;
  /** Calls that the client has to answer; empty unless `finishReason` is `tool_calls`. */
  readonly clientCalls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  readonly error: RunError | null;
  readonly usage: Usage;
  /** The question that the run waits for; null unless `state` is `waiting`. */
  readonly approvalId: ApprovalId | null;
}
