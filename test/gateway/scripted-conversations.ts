import type { Conversations, Submitted, SubmitRequest } from "../../src/agent/conversations.ts";
import { type LiveRun, LiveRunWriter } from "../../src/agent/live-run.ts";
import type { Approval, Decision } from "../../src/domain/approval.ts";
import { type ApprovalId, asId, newId, type RunId, type SessionId } from "../../src/domain/ids.ts";
import { noUsage } from "../../src/domain/message.ts";
import { isEnded, type Run, type RunError } from "../../src/domain/run.ts";
import type { Clock } from "../../src/kernel/clock.ts";
import type { MemoryStore } from "./memory-store.ts";

/**
 * Conversations whose runs do what a test tells them, word by word: `script` is called with each run that is
 * accepted, or the test holds the run (`next`) and drives it while a client listens.
 */
export class ScriptedConversations implements Conversations {
  readonly submissions: SubmitRequest[] = [];
  readonly cancelled: { readonly runId: RunId; readonly reason: string }[] = [];
  /** What the next submissions are refused with. */
  refusal: Extract<Submitted, { kind: "refused" }> | null = null;
  script: (run: ScriptedRun) => void = (run) => run.answer("Hello");
  readonly #store: MemoryStore;
  readonly #clock: Clock;
  readonly #runs = new Map<RunId, ScriptedRun>();
  readonly #keys = new Map<string, { readonly hash: string; readonly runId: RunId }>();
  readonly #waiters: ((run: ScriptedRun) => void)[] = [];

  constructor(store: MemoryStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** The next run that is accepted, left to the caller to drive. */
  next(): Promise<ScriptedRun> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  async submit(request: SubmitRequest): Promise<Submitted> {
    this.submissions.push(request);
    if (this.refusal !== null) return this.refusal;
    const key = request.idempotency;
    const seen = key === null ? undefined : this.#keys.get(JSON.stringify([key.token, key.route, key.key]));
    if (key !== null && seen !== undefined) return this.#replay(seen, key.bodyHash);
    const answered = this.#answerQuestion(request);
    if (answered !== null) return answered;
    const run = this.#accept(request);
    if (key !== null) {
      const entry = { hash: key.bodyHash, runId: run.id };
      this.#keys.set(JSON.stringify([key.token, key.route, key.key]), entry);
    }
    const scripted = new ScriptedRun(this.#store, this.#clock, run);
    this.#runs.set(run.id, scripted);
    const waiter = this.#waiters.shift();
    if (waiter === undefined) this.script(scripted);
    else waiter(scripted);
    return { kind: "accepted", run, live: scripted.live };
  }

  async cancel(runId: RunId, reason: string) {
    const run = this.#store.savedRuns.get(runId);
    if (run === undefined) return "not_found";
    if (isEnded(run.state)) return "run_ended";
    this.cancelled.push({ runId, reason });
    this.#runs.get(runId)?.cancel(reason);
    return "cancelled";
  }

  async decide(id: ApprovalId, decision: Decision, by: string) {
    const approval = this.#store.savedApprovals.get(id);
    if (approval === undefined) return { kind: "refused", code: "not_found" } as const;
    if (approval.state !== "pending") return { kind: "refused", code: "approval_decided" } as const;
    const run = this.#runs.get(approval.runId);
    if (run === undefined) return { kind: "refused", code: "not_found" } as const;
    return { kind: "decided", approval: run.decide(approval, decision, by), run: run.saved } as const;
  }

  async reset(sessionId: SessionId) {
    return this.#store.savedSessions.has(sessionId) ? "reset" : "not_found";
  }

  live(runId: RunId): LiveRun | undefined {
    const live = this.#runs.get(runId)?.live;
    return live?.ending === null ? live : undefined;
  }

  #replay(seen: { readonly hash: string; readonly runId: RunId }, hash: string): Submitted {
    const scripted = this.#runs.get(seen.runId);
    if (scripted === undefined || seen.hash !== hash) {
      return { kind: "refused", code: "idempotency_conflict", message: "another body" };
    }
    return { kind: "replayed", run: scripted.saved, live: this.live(seen.runId) ?? null };
  }

  #answerQuestion({ sessionId, mayDecide, input, principal }: SubmitRequest): Submitted | null {
    const pending = [...this.#store.savedApprovals.values()].find(
      (approval) => approval.sessionId === sessionId && approval.state === "pending",
    );
    const said = input.messages.at(-1)?.content;
    if (pending === undefined || !mayDecide || said !== "/yes") return null;
    const run = this.#runs.get(pending.runId);
    if (run === undefined) return null;
    const approval = run.decide(pending, "approve", principal);
    queueMicrotask(() => this.script(run));
    return { kind: "decided", run: run.saved, approval, live: run.live };
  }

  #accept(request: SubmitRequest): Run {
    const at = this.#clock.now();
    const id = newId<RunId>(at);
    const sessionId = request.sessionId ?? asId<SessionId>(`ephemeral-${id}`);
    const { principal, agent, channel, input } = request;
    const run: Run = {
      id,
      sessionId,
      principal,
      agent,
      kind: "chat",
      state: "running",
      input,
      ephemeral: request.sessionId === null,
      keyed: request.idempotency !== null,
      attempt: 1,
      createdAt: at,
      startedAt: at,
      endedAt: null,
      activeMs: 0,
      finishReason: null,
      output: null,
      clientCalls: [],
      error: null,
      usage: noUsage,
      approvalId: null,
    };
    this.#store.savedRuns.set(id, run);
    this.#store.addEvent(run, at, { type: "run.queued" });
    this.#store.addEvent(run, at, { type: "run.started", attempt: 1 });
    if (request.sessionId !== null) {
      const session = { id: sessionId, principal, agent, channel, createdAt: at, updatedAt: at };
      const known = this.#store.savedSessions.get(sessionId);
      this.#store.savedSessions.set(sessionId, known ?? { ...session, startSeq: 0, messageCount: 0 });
      for (const message of input.messages) this.#store.addMessage(sessionId, id, at, message);
    }
    return run;
  }
}

/** One run in a test's hands. */
export class ScriptedRun {
  readonly #store: MemoryStore;
  readonly #clock: Clock;
  readonly #id: RunId;
  #live: LiveRunWriter;

  constructor(store: MemoryStore, clock: Clock, run: Run) {
    this.#store = store;
    this.#clock = clock;
    this.#id = run.id;
    this.#live = new LiveRunWriter(run);
  }

  get live(): LiveRunWriter {
    return this.#live;
  }

  get saved(): Run {
    const run = this.#store.savedRuns.get(this.#id);
    if (run === undefined) throw new Error("the run was deleted");
    return run;
  }

  /** Begins the text of a model call. */
  begin(step: number): this {
    this.#live.begin(step);
    return this;
  }

  say(text: string): this {
    this.#live.append(text);
    return this;
  }

  event(body: Parameters<MemoryStore["addEvent"]>[2]): this {
    this.#store.addEvent(this.saved, this.#clock.now(), body);
    return this;
  }

  /** Says the text as one more model call and completes. */
  answer(text: string, more: Partial<Run> = {}): void {
    this.begin(this.#live.segments.length).say(text).complete(text, more);
  }

  complete(output: string, more: Partial<Run> = {}): void {
    const finishReason = more.finishReason ?? "stop";
    const usage = { promptTokens: 7, completionTokens: 3 };
    if (!this.saved.ephemeral) {
      this.#store.addMessage(this.saved.sessionId, this.#id, this.#clock.now(), {
        role: "assistant",
        content: output,
      });
    }
    this.#finish({ state: "completed", output, usage, ...more, finishReason });
    this.event({ type: "run.completed", finishReason, messageSeq: null });
    this.#live.end({ kind: "ended", run: this.saved });
  }

  fail(error: RunError, output: string | null = null): void {
    this.#finish({ state: "failed", error, output });
    this.event({ type: "run.failed", error });
    this.#live.end({ kind: "ended", run: this.saved });
  }

  cancel(reason: string): void {
    const output = this.#live.segments.at(-1)?.text ?? null;
    this.#finish({ state: "cancelled", output });
    this.event({ type: "run.cancelled", reason });
    this.#live.end({ kind: "ended", run: this.saved });
  }

  interrupt(error: RunError): void {
    this.#live.end({ kind: "interrupted", run: this.saved, error });
  }

  ask(question: Partial<Approval> = {}): Approval {
    const at = this.#clock.now();
    const approval: Approval = {
      id: newId<ApprovalId>(at),
      runId: this.#id,
      sessionId: this.saved.sessionId,
      callId: "call_1",
      tool: "bash",
      arguments: '{"command":"ls"}',
      reason: "it runs a command",
      pattern: null,
      state: "pending",
      decidedBy: null,
      createdAt: at,
      decidedAt: null,
      expiresAt: at + 900_000,
      ...question,
    };
    this.#store.savedApprovals.set(approval.id, approval);
    this.#save({ state: "waiting", approvalId: approval.id });
    this.event({
      type: "approval.requested",
      approvalId: approval.id,
      tool: approval.tool,
      callId: approval.callId,
    });
    this.event({ type: "run.waiting", approvalId: approval.id });
    this.#live.end({ kind: "waiting", run: this.saved, approval });
    return approval;
  }

  /** Answers the run's question; it goes on as another live run. */
  decide(approval: Approval, decision: Decision, by: string): Approval {
    const state = decision === "deny" ? "denied" : "approved";
    const decided = { ...approval, state, decidedBy: by, decidedAt: this.#clock.now() } as const;
    this.#store.savedApprovals.set(approval.id, decided);
    this.#save({ state: "running", approvalId: null });
    this.event({ type: "approval.resolved", approvalId: approval.id, outcome: decision, by });
    this.event({ type: "run.resumed", attempt: 2 });
    this.#live = new LiveRunWriter(this.saved);
    return decided;
  }

  #finish(end: Partial<Run>): void {
    this.#save({ ...end, endedAt: this.#clock.now(), approvalId: null });
  }

  #save(change: Partial<Run>): void {
    this.#store.savedRuns.set(this.#id, { ...this.saved, ...change });
  }
}
