import assert from "node:assert/strict";
import { type ApprovalId, newId, type RunId, type SessionId } from "../../src/domain/ids.ts";
import { Unreachable } from "../../src/kernel/errors.ts";
import type { Accepted, FinishRun, Store } from "../../src/store/ports.ts";
import { acceptRequest, call, finishRequest, keyOf, question, start, stepOf, user } from "./requests.ts";
import { LaneModel, type ModelRun } from "./lane-model.ts";
import { type Operation, type OperationOnRun, sessions } from "./operations.ts";

/** Drives the store and the model side by side; each answer of the store must be the model's. */
export class Duet {
  readonly #store: Store;
  readonly #model = new LaneModel();
  readonly #approvals = new Map<RunId, ApprovalId>();
  #clock = start;
  #texts = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  get model(): LaneModel {
    return this.#model;
  }

  async perform(operation: Operation): Promise<void> {
    this.#clock += 1;
    if ("run" in operation) {
      const { runs } = this.#model;
      const run = runs[runs.length - 1 - (operation.run % Math.max(1, runs.length))];
      return run === undefined ? undefined : this.#onRun(operation, run);
    }
    const sessionId = sessionAt(operation.session);
    switch (operation.op) {
      case "accept":
        return this.#accept(sessionId, operation.start, operation.key);
      case "startNext": {
        const run = await this.#store.runs.startNext(sessionId, { queuedAfter: 0, at: this.#clock });
        return assert.equal(run?.id ?? null, this.#model.startNext(sessionId));
      }
      case "delete":
        return assert.equal(await this.#store.sessions.delete(sessionId), this.#model.delete(sessionId));
      default:
        throw new Unreachable(operation);
    }
  }

  async #accept(sessionId: SessionId, starts: boolean, key: string | null): Promise<void> {
    const id = newId<RunId>(this.#clock);
    const idempotency = key === null ? null : { token: "t", route: "r", key, bodyHash: "b" };
    this.#texts += 1;
    const messages = [user(`message ${this.#texts}`)];
    const request = { id, sessionId, start: starts, idempotency, messages, at: this.#clock };
    const outcome = await this.#store.runs.accept(acceptRequest(request));
    assert.deepEqual(shown(outcome), this.#model.accept(id, sessionId, starts, key));
  }

  async #onRun(operation: OperationOnRun, run: ModelRun): Promise<void> {
    const at = this.#clock;
    const attempt = run.attempt - operation.stale;
    const writer = { id: run.id, attempt };
    const key = { ...keyOf(writer, operation.index, Math.max(0, run.steps.length - 1)), at };
    switch (operation.op) {
      case "resume": {
        const resumed = await this.#store.runs.resume(run.id, at);
        return assert.equal(resumed?.attempt ?? null, this.#model.resume(run));
      }
      case "finish": {
        const outcome = await this.#store.runs.finish(
          finishRequest(writer, { ...endings[operation.how], at }),
        );
        const finished = this.#model.finish(run, attempt, operation.how === "failed");
        return assert.equal(outcome.kind, finished ? "finished" : "refused");
      }
      case "record": {
        if (!this.#model.mayRecord(run)) return;
        const step = run.steps.length;
        const calls = operation.calls.map(({ effect, client, ran }, index) =>
          call(`${run.id}-${step}-${index}`, { effect, client, started: ran && !client }),
        );
        const outcome = await this.#store.steps.record(stepOf(writer, calls, { step, at }));
        const modelled = operation.calls.map((one) => ({ ...one, ran: one.ran && !one.client }));
        return assert.equal(settledIn(outcome), this.#model.record(run, attempt, modelled));
      }
      case "startCall": {
        const { kind } = await this.#store.steps.startCall(key);
        const started = this.#model.startCall(run, attempt, operation.index);
        return assert.equal(kind, started ? "started" : "refused");
      }
      case "settle": {
        const outcome = await this.#store.steps.settle({ ...key, result: { ok: true, text: "done" } });
        return assert.equal(settledIn(outcome), this.#model.settle(run, attempt, operation.index));
      }
      case "ask": {
        const asked = question(writer, { call: key, at });
        const { kind } = await this.#store.approvals.ask(asked);
        if (kind === "asked") this.#approvals.set(run.id, asked.id);
        return assert.equal(kind, this.#model.ask(run, attempt, operation.index) ? "asked" : "refused");
      }
      case "decide": {
        const id = this.#approvals.get(run.id);
        if (id === undefined) return;
        const { outcome } = operation;
        const answer = { id, outcome, by: "alice", deniedResult: "denied", idempotency: null, at };
        const { kind } = await this.#store.approvals.decide(answer);
        const denied = outcome === "deny" || outcome === "expired";
        return assert.equal(kind, this.#model.decide(run, denied) ? "decided" : "refused");
      }
      default:
        throw new Unreachable(operation);
    }
  }
}

const endings: Record<"stop" | "tool_calls" | "failed" | "cancelled", Partial<FinishRun>> = {
  stop: {},
  tool_calls: { finishReason: "tool_calls", message: null, output: null },
  failed: {
    state: "failed",
    finishReason: null,
    message: null,
    output: null,
    error: { code: "internal", message: "x" },
  },
  cancelled: { state: "cancelled", finishReason: null, reason: "user" },
};

function sessionAt(index: number): SessionId {
  const id = sessions[index];
  if (id === undefined) throw new Error(`no session ${index}`);
  return id;
}

function shown(outcome: Accepted): { kind: string; id: RunId | null } {
  return { kind: outcome.kind, id: outcome.kind === "refused" ? null : outcome.run.id };
}

const settledIn = (outcome: { readonly kind: string; readonly settled?: boolean }): boolean | null =>
  outcome.settled ?? null;
