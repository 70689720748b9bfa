import type { Approval, ApprovalState, Decision, Grant } from "../domain/approval.ts";
import type { Effect } from "../domain/autonomy.ts";
import type { Event, EventType } from "../domain/event.ts";
import type {
  AgentName,
  ApprovalId,
  AttachmentId,
  MessageId,
  Principal,
  RunId,
  SessionId,
} from "../domain/ids.ts";
import type { Usage } from "../domain/message.ts";
import type { EndedRunState, FinishReason, Run, RunError, RunInput, RunState } from "../domain/run.ts";

/**
 * The store as its consumers need it. Every method that writes is one transaction: the state change, its
 * messages and its events are on disk (fsynced) when the promise resolves, or nothing of it is.
 *
 * Expected refusals are values (`kind: "refused"`). A store that cannot work (disk full, I/O error, locked or
 * corrupt file) rejects with `BeamclawError("store_unavailable")` and nothing of the call is kept.
 *
 * `at` is always the caller's clock, in milliseconds since the epoch; the store reads no clock itself.
 */
export interface Store {
  readonly runs: RunStore;
  readonly steps: StepStore;
  readonly approvals: ApprovalStore;
  readonly sessions: SessionStore;
  readonly events: EventStore;
  readonly tokens: TokenStore;
  readonly attachments: AttachmentStore;
  /** Proves that a commit reaches the disk; rejects like any write. */
  probe(at: number): Promise<void>;
  /** Writes a consistent copy while running. The file must not exist. */
  backup(file: string): Promise<void>;
  /** Waits for what is in flight, checkpoints, closes. Later calls reject. */
  close(): Promise<void>;
}

// === Runs

export interface NewRun {
  readonly id: RunId;
  readonly sessionId: SessionId;
  readonly principal: Principal;
  readonly agent: AgentName;
  readonly channel: string;
  readonly ephemeral: boolean;
  readonly input: RunInput;
}

/** Unique per (token, route, key) for 24 h. */
export interface IdempotencyKey {
  readonly token: string;
  readonly route: string;
  readonly key: string;
  /** SHA-256 of the request's body, hex. */
  readonly bodyHash: string;
}

export interface AcceptRun {
  readonly run: NewRun;
  readonly idempotency: IdempotencyKey | null;
  /** Ids for the input's messages, one each, used if they join the history. */
  readonly messageIds: readonly MessageId[];
  /** Start at once if the session has no other open run (the caller holds a free slot). */
  readonly start: boolean;
  readonly limits: { readonly perSession: number; readonly total: number };
  readonly at: number;
}

export type Accepted =
  | { readonly kind: "started"; readonly run: Run }
  | { readonly kind: "queued"; readonly run: Run }
  /** The key was seen with the same body: this is its run, whatever its state. */
  | { readonly kind: "replayed"; readonly run: Run }
  | { readonly kind: "refused"; readonly code: "queue_full" | "overloaded" | "idempotency_conflict" };

/** Writes of a run that is no longer active, or under an older attempt, are refused: the fence. */
export type Fenced = { readonly kind: "refused"; readonly code: "fenced" };

export interface RunFilter {
  readonly principal?: Principal;
  readonly sessionId?: SessionId;
  readonly states?: readonly RunState[];
  readonly page: Page;
}

/** Newest first. `cursor` is opaque, from a former answer's `nextCursor`. `limit` 1–200. */
export interface Page {
  readonly cursor: string | null;
  readonly limit: number;
}
export interface Paged<T> {
  readonly data: readonly T[];
  readonly nextCursor: string | null;
}

export interface RunStore {
  /**
   * Takes a run into the session's lane (creating the session where it is new) and, if `start` is set and the
   * lane is free, starts it in the same transaction: its input joins the history, `attempt` is 1.
   * A key whose former run failed before any effect is released, and the run is accepted afresh.
   */
  accept(request: AcceptRun): Promise<Accepted>;
  /**
   * Starts the oldest queued run of the session if none is active. Queued runs created before `queuedAfter`
   * are expired on the way. Null where nothing is left to start.
   */
  startNext(
    sessionId: SessionId,
    options: { readonly queuedAfter: number; readonly at: number },
  ): Promise<Run | null>;
  /** Takes a `running` or `waiting` run over: state `running`, `attempt` one higher. Null if it has ended. */
  resume(runId: RunId, at: number): Promise<Run | null>;
  /** Ends a run: see `FinishRun`. Queued runs are ended with `attempt: 0`. */
  finish(request: FinishRun): Promise<Finished | Fenced>;
  get(runId: RunId): Promise<Run | null>;
  list(filter: RunFilter): Promise<Paged<Run>>;
  /** Sessions that have open runs, oldest run first; what a restart has to take care of. */
  openSessions(): Promise<readonly { readonly sessionId: SessionId; readonly states: readonly RunState[] }[]>;
  /** Deletes ended ephemeral runs, their events and steps, and idempotency keys, all older than `before`. */
  purge(before: number, limit: number): Promise<number>;
}

export interface FinishRun {
  readonly runId: RunId;
  readonly attempt: number;
  readonly state: EndedRunState;
  readonly finishReason: FinishReason | null;
  /** The assistant's last message as wire JSON; joins the history unless the run is ephemeral. */
  readonly message: { readonly id: MessageId; readonly wire: string; readonly extra: string | null } | null;
  readonly output: string | null;
  readonly error: RunError | null;
  /** For `run.cancelled` and `run.expired`: `user`, `superseded`, `disconnected`, `queue_ttl` … */
  readonly reason: string;
  /** Of the last model call; the steps' has been added as they were recorded. */
  readonly usage: Usage;
  readonly activeMs: number;
  /**
   * Text of the synthetic result that every unsettled server call of the open step gets, so that the
   * history stays paired; client calls stay open if `finishReason` is `tool_calls`. Pending approvals of
   * the run become `withdrawn`.
   */
  readonly unsettledResult: string;
  readonly at: number;
}

/** `queued` says whether the session has another run waiting for its turn. */
export interface Finished {
  readonly kind: "finished";
  readonly run: Run;
  readonly queued: boolean;
}

// === Steps: what happens inside a run

/** `client` calls are answered by the caller's next request, never by us. */
export interface NewCall {
  readonly callId: string;
  readonly tool: string;
  readonly effect: Effect;
  readonly client: boolean;
  /** As the model wrote them; kept until the call settles, then overwritten with the scrubbed text. */
  readonly rawArguments: string;
  readonly scrubbedArguments: string;
  /** Given where the call needs no execution (invalid, refused): its scrubbed result. */
  readonly result: { readonly ok: boolean; readonly text: string } | null;
  /** Marked started in this very commit (D4), because it runs next. */
  readonly started: boolean;
}

export interface StoredCall {
  readonly index: number;
  readonly callId: string;
  readonly tool: string;
  readonly effect: Effect;
  readonly client: boolean;
  readonly arguments: string;
  readonly state: "pending" | "started" | "settled";
  readonly approved: boolean;
  readonly result: { readonly ok: boolean; readonly text: string } | null;
}

/** A model answer with tool calls, and how far its calls have come. */
export interface StoredStep {
  readonly step: number;
  /** Wire JSON of the assistant message. */
  readonly wire: string;
  readonly extra: string | null;
  readonly messageId: MessageId;
  readonly calls: readonly StoredCall[];
}

export interface RecordStep {
  readonly runId: RunId;
  readonly attempt: number;
  readonly step: number;
  readonly messageId: MessageId;
  readonly wire: string;
  readonly extra: string | null;
  readonly calls: readonly NewCall[];
  readonly usage: Usage;
  readonly at: number;
}

export interface StepStore {
  /**
   * Commits a model answer that calls tools. The answer and its results join the history together, in the
   * transaction that settles the last server call: a history never holds an unanswered tool call, except the
   * client calls of a run that completed with `tool_calls`.
   */
  record(step: RecordStep): Promise<{ readonly kind: "recorded"; readonly settled: boolean } | Fenced>;
  /** Marks a call started. An effectful call must be started (committed) before it runs. */
  startCall(call: CallKey & { readonly at: number }): Promise<{ readonly kind: "started" } | Fenced>;
  /** Stores a result; `settled` says whether it was the step's last open server call. */
  settle(
    call: CallKey & {
      readonly result: { readonly ok: boolean; readonly text: string };
      readonly at: number;
    },
  ): Promise<{ readonly kind: "settled"; readonly settled: boolean } | Fenced>;
  /** Steps of a run in order, with their calls. */
  list(runId: RunId): Promise<readonly StoredStep[]>;
  /**
   * The step that made these client calls, if `principal` was given it less than 24 h before `at`; so that a
   * stateless client's tool results find the server's results of the same step again.
   */
  findByCall(
    principal: Principal,
    callId: string,
    at: number,
  ): Promise<{ readonly runId: RunId; readonly step: StoredStep } | null>;
}

export interface CallKey {
  readonly runId: RunId;
  readonly attempt: number;
  readonly step: number;
  readonly index: number;
}

// === Approvals

export interface AskApproval {
  readonly id: ApprovalId;
  readonly call: CallKey;
  readonly reason: string;
  readonly pattern: string | null;
  readonly activeMs: number;
  readonly expiresAt: number;
  readonly at: number;
}

export type Decided =
  | { readonly kind: "decided"; readonly approval: Approval }
  | {
      readonly kind: "refused";
      readonly code: "not_found" | "approval_decided";
      readonly approval: Approval | null;
    };

export interface ApprovalFilter {
  readonly principal?: Principal;
  readonly sessionId?: SessionId;
  readonly states?: readonly ApprovalState[];
  readonly page: Page;
}

export interface ApprovalStore {
  /** Opens the question; the run becomes `waiting`. */
  ask(question: AskApproval): Promise<{ readonly kind: "asked" } | Fenced>;
  /**
   * Answers it, once. `approve` and `always` mark the call approved, `deny` and `expired` settle it with
   * `deniedResult`; `always` also stores the grant. The run stays `waiting` until it is resumed.
   */
  decide(answer: {
    readonly id: ApprovalId;
    readonly outcome: Decision | "expired";
    readonly by: string;
    readonly deniedResult: string;
    /** Makes a retry of the request that brought the answer find the same run. */
    readonly idempotency: IdempotencyKey | null;
    readonly at: number;
  }): Promise<Decided>;
  get(id: ApprovalId): Promise<Approval | null>;
  /** The open question of a session; null where none is. */
  pendingOf(sessionId: SessionId): Promise<Approval | null>;
  list(filter: ApprovalFilter): Promise<Paged<Approval>>;
  /** Pending questions whose time is up, oldest first, and when the next one is due (null: none pending). */
  due(
    at: number,
    limit: number,
  ): Promise<{ readonly due: readonly Approval[]; readonly nextAt: number | null }>;
  grants(sessionId: SessionId): Promise<readonly Grant[]>;
}

// === Sessions and their history

export interface Session {
  readonly id: SessionId;
  readonly principal: Principal;
  readonly agent: AgentName;
  readonly channel: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Messages that the model sees: seq ≥ this. Reset and compaction move it; nothing is rewritten. */
  readonly startSeq: number;
  readonly messageCount: number;
}

export interface StoredMessage {
  readonly seq: number;
  readonly id: MessageId;
  readonly runId: RunId | null;
  readonly wire: string;
  readonly createdAt: number;
}

/** One entry of what the model sees. `attachments`: the wire JSON refers to `attachment:<id>` parts. */
export interface TranscriptEntry {
  readonly wire: string;
  readonly extra: string | null;
  readonly attachments: boolean;
}

export interface SessionStore {
  get(id: SessionId): Promise<Session | null>;
  list(filter: { readonly principal?: Principal; readonly page: Page }): Promise<Paged<Session>>;
  /** Oldest first from `after` (exclusive; -1 for all), the whole history whatever `startSeq` is. */
  messages(id: SessionId, after: number, limit: number): Promise<readonly StoredMessage[]>;
  /**
   * What the model sees next in a run: the session's history from its start seq (stateless: the run's input),
   * with the run's own settled steps. Ready text, no parse.
   */
  transcript(run: Pick<Run, "id" | "sessionId" | "ephemeral">): Promise<readonly TranscriptEntry[]>;
  /** Calls of the last message that a client was asked to answer and has not; empty in the normal case. */
  openClientCalls(id: SessionId): Promise<readonly string[]>;
  /** Moves the start of the visible history. `expected` is the start seq the caller saw; false if it has moved. */
  moveStart(
    id: SessionId,
    move: { readonly expected: number; readonly to: number; readonly at: number },
  ): Promise<boolean>;
  /** Lets the visible history start afresh, atomically: `session_busy` while the session has an open run. */
  reset(id: SessionId, at: number): Promise<"reset" | "not_found" | "session_busy">;
  /** Deletes the session with all that hangs on it; `session_busy` while it has open runs. */
  delete(id: SessionId): Promise<"deleted" | "not_found" | "session_busy">;
}

// === Events

export interface EventStore {
  /** Events of a session with seq > `after`, in order; of one run only where `runId` is given. `limit` 1–1000. */
  after(
    sessionId: SessionId,
    after: number,
    options: { readonly runId?: RunId; readonly limit: number },
  ): Promise<readonly Event[]>;
  /** Calls `listener` after each commit that wrote events, with those events. Returns the unsubscription. */
  subscribe(listener: (events: readonly Event[]) => void): () => void;
}

export type { EventType };

// === Tokens

export interface TokenRecord {
  readonly name: string;
  /** SHA-256 of the secret, hex. */
  readonly hash: string;
  readonly scopes: readonly string[];
  /** Restricts the token to one agent. */
  readonly agent: AgentName | null;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
}

export interface TokenStore {
  /** False if a live token of that name exists. */
  create(token: TokenRecord): Promise<boolean>;
  revoke(name: string, at: number): Promise<boolean>;
  list(): Promise<readonly TokenRecord[]>;
}

// === Attachments: bytes by content hash, as files beside the database

export interface AttachmentStore {
  /** Writes the file atomically (fsynced) before anything can refer to it; the same bytes are kept once. */
  put(bytes: Uint8Array, mime: string): Promise<AttachmentId>;
  get(id: AttachmentId): Promise<{ readonly bytes: Uint8Array; readonly mime: string } | null>;
}
