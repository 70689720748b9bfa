/**
 * The one door to conversations. A session is a lane: its runs execute one at a time, in order. The store owns
 * every lane's queue; this registry knows which sessions work in this process, hands out the slots for
 * concurrent runs, and takes runs up again after a decision, a fault or a restart.
 */
import type { Approval, Decision } from "../domain/approval.ts";
import type { ErrorCode } from "../domain/error-catalogue.ts";
import { type ApprovalId, asId, type MessageId, newId, type RunId, type SessionId } from "../domain/ids.ts";
import { isEnded, type Run } from "../domain/run.ts";
import { Unreachable } from "../kernel/errors.ts";
import type { Accepted } from "../store/ports.ts";
import type { Conversations, Submitted, SubmitRequest } from "./conversations.ts";
import { decisionIn } from "./decision-command.ts";
import type { LiveRun } from "./live-run.ts";
import type { CancelReason } from "./loop.ts";
import { runError } from "./run-end.ts";
import type { RunServices } from "./run-services.ts";
import { deniedByUser, expiredUnanswered } from "./tool-step.ts";
import { storeImages } from "./transcript.ts";
import { type LaneSettings, Lanes } from "./lanes.ts";

export class SessionRegistry implements Conversations {
  readonly #services: RunServices;
  readonly #settings: LaneSettings;
  readonly #lanes: Lanes;
  #draining = false;

  constructor(services: RunServices, settings: LaneSettings) {
    this.#services = services;
    this.#settings = settings;
    this.#lanes = new Lanes(services, settings);
  }

  /** The supervised child: works until stopped, then leaves every run as it is stored. */
  get run() {
    return this.#lanes.run;
  }

  /** Sessions that work in this process. */
  get size(): number {
    return this.#lanes.size;
  }

  async submit(request: SubmitRequest): Promise<Submitted> {
    if (this.#draining) return refused("shutting_down", "the daemon is stopping", 5);
    const answered = await this.#answerQuestion(request);
    if (answered !== null) return answered;
    const { store, clock } = this.#services;
    const at = clock.now();
    const id = newId<RunId>(at);
    const messages = await storeImages(request.input.messages, store.attachments);
    const slot = this.#lanes.takeSlot();
    let accepted: Accepted;
    try {
      accepted = await store.runs.accept({
        run: {
          id,
          sessionId: request.sessionId ?? asId<SessionId>(`ephemeral-${id}`),
          principal: request.principal,
          agent: request.agent,
          channel: request.channel,
          ephemeral: request.sessionId === null,
          input: { ...request.input, messages },
        },
        idempotency: request.idempotency,
        messageIds: messages.map(() => newId<MessageId>(at)),
        start: slot,
        limits: this.#settings.queue,
        at,
      });
    } catch (error) {
      if (slot) this.#lanes.releaseSlot();
      throw error;
    }
    return this.#place(accepted, slot);
  }

  async cancel(runId: RunId, reason: CancelReason): Promise<"cancelled" | "run_ended" | "not_found"> {
    const active = this.#lanes.active(runId);
    if (active !== undefined) {
      active.scope.cancel(reason);
      await active.done;
    }
    const run = await this.#services.store.runs.get(runId);
    if (run === null) return "not_found";
    if (active !== undefined && run.state === "cancelled") return "cancelled";
    if (isEnded(run.state)) return "run_ended";
    const told = reason === "superseded" ? "Withdrawn: superseded by a new message." : "Stopped by the user.";
    const ended = await this.#lanes.endIdle(run, {
      state: "cancelled",
      reason,
      error: null,
      unsettledResult: told,
    });
    return ended ? "cancelled" : "run_ended";
  }

  async decide(id: ApprovalId, decision: Decision, by: string) {
    const decided = await this.#settle(id, decision, by, null);
    if (decided.kind === "refused") return decided;
    return { kind: "decided", approval: decided.approval, run: decided.run } as const;
  }

  /** Denies a question whose time is up, and lets its run go on with that. */
  async expire(approval: Approval): Promise<void> {
    await this.#settle(approval.id, "expired", "system", null);
  }

  async reset(sessionId: SessionId): Promise<"reset" | "not_found" | "session_busy"> {
    const { store, clock, obs } = this.#services;
    const outcome = await store.sessions.reset(sessionId, clock.now());
    if (outcome === "reset") obs.events.sessionReset({ session_id: sessionId });
    return outcome;
  }

  live(runId: RunId): LiveRun | undefined {
    return this.#lanes.live(runId);
  }

  /** Takes up what a former process left open. Costs nothing for sessions without open runs. */
  async recover(): Promise<void> {
    for (const { sessionId } of await this.#services.store.runs.openSessions()) {
      await this.#recoverSession(sessionId);
    }
  }

  /** Refuses new work and waits until no run works any more, or `signal` aborts. */
  async drain(signal: AbortSignal): Promise<void> {
    this.#draining = true;
    await this.#lanes.quiet(signal);
  }

  /** `/yes`, `/no` or `/always` alone, from someone who may decide, answers the session's open question. */
  async #answerQuestion(request: SubmitRequest): Promise<Submitted | null> {
    const decision = request.mayDecide ? decisionIn(request.input.messages) : null;
    if (decision === null || request.sessionId === null) return null;
    const pending = await this.#services.store.approvals.pendingOf(request.sessionId);
    if (pending === null) return null;
    const decided = await this.#settle(pending.id, decision, request.principal, request.idempotency);
    if (decided.kind === "refused") return null;
    return { kind: "decided", run: decided.run, approval: decided.approval, live: decided.live };
  }

  async #settle(
    id: ApprovalId,
    outcome: Decision | "expired",
    by: string,
    idempotency: SubmitRequest["idempotency"],
  ) {
    const { store, clock, obs } = this.#services;
    const decided = await store.approvals.decide({
      id,
      outcome,
      by,
      deniedResult: outcome === "expired" ? expiredUnanswered : deniedByUser,
      idempotency,
      at: clock.now(),
    });
    if (decided.kind === "refused") return { kind: "refused", code: decided.code } as const;
    const { approval } = decided;
    const run = await store.runs.get(approval.runId);
    if (run === null) return { kind: "refused", code: "not_found" } as const;
    obs.events.approvalResolved({
      session_id: approval.sessionId,
      run_id: approval.runId,
      trace_id: this.#services.traceId(approval.runId),
      approval_id: id,
      tool_name: approval.tool,
      decision: outcome,
    });
    const live = this.#lanes.resume(run);
    return { kind: "decided", approval, run, live } as const;
  }

  async #place(accepted: Accepted, slot: boolean): Promise<Submitted> {
    if (slot && accepted.kind !== "started") this.#lanes.releaseSlot();
    switch (accepted.kind) {
      case "started":
        return { kind: "accepted", run: accepted.run, live: this.#lanes.launch(accepted.run) };
      case "queued":
        return { kind: "accepted", run: accepted.run, live: await this.#enqueue(accepted.run) };
      case "replayed":
        return { kind: "replayed", run: accepted.run, live: this.#lanes.live(accepted.run.id) ?? null };
      case "refused":
        this.#services.obs.events.runRefused({ reason: accepted.code });
        return refused(
          accepted.code,
          refusals[accepted.code],
          accepted.code === "idempotency_conflict" ? undefined : 5,
        );
      default:
        throw new Unreachable(accepted);
    }
  }

  /** A queued message withdraws the question that its session waits for: the person has moved on. */
  async #enqueue(run: Run): Promise<LiveRun> {
    const live = this.#lanes.enqueue(run);
    const pending = await this.#services.store.approvals.pendingOf(run.sessionId);
    if (pending !== null) await this.cancel(pending.runId, "superseded");
    return live;
  }

  async #recoverSession(sessionId: SessionId): Promise<void> {
    const { store } = this.#services;
    const { data } = await store.runs.list({
      sessionId,
      states: ["running", "waiting", "retrying"],
      page: { cursor: null, limit: 10 },
    });
    const [open] = data;
    if (open === undefined) return this.#lanes.ready(sessionId);
    if (open.ephemeral && !open.keyed) {
      await this.#lanes.endIdle(open, {
        state: "failed",
        reason: "interrupted",
        error: runError("interrupted"),
        unsettledResult: "Not finished: the daemon stopped.",
      });
    } else if (open.state !== "waiting") {
      this.#lanes.resume(open);
    } else {
      await this.#recoverWaiting(open);
    }
  }

  /** The former process may have died between accepting the message that moves on and withdrawing the question. */
  async #recoverWaiting(run: Run): Promise<void> {
    const { store } = this.#services;
    const { sessionId } = run;
    const pending = await store.approvals.pendingOf(sessionId);
    if (pending === null) return void this.#lanes.resume(run);
    const queued = await store.runs.list({ sessionId, states: ["queued"], page: { cursor: null, limit: 1 } });
    const [newest] = queued.data;
    if (newest !== undefined && newest.createdAt > pending.createdAt) await this.cancel(run.id, "superseded");
  }
}

const refusals = {
  queue_full: "this session has too many messages waiting",
  overloaded: "too many runs are waiting",
  idempotency_conflict: "this Idempotency-Key was used with another body",
} as const;

const refused = (code: ErrorCode, message: string, retryAfterSeconds?: number): Submitted => ({
  kind: "refused",
  code,
  message,
  ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
});
