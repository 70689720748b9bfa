import type Database from "better-sqlite3";
import type { Approval, ApprovalState, Decision } from "../../domain/approval.ts";

import type { ApprovalStore, AskApproval, Decided, Fenced } from "../ports.ts";
import { approvalColumns, approvalTables } from "./approval-row.ts";
import { fenced, type OpenRun } from "./open-runs.ts";
import type { Parts } from "./parts.ts";
import { parameter } from "./statement.ts";

export type Answer = Parameters<ApprovalStore["decide"]>[0];

interface NewQuestion extends Pick<AskApproval, "id" | "reason" | "pattern" | "at" | "expiresAt"> {
  readonly run: number;
  readonly session: number;
  readonly step: number;
  readonly position: number;
}

interface QuestionRow extends Approval {
  readonly run: number;
  readonly step: number;
  readonly position: number;
}

const stateAfter = {
  approve: "approved",
  always: "approved",
  deny: "denied",
  expired: "expired",
} as const satisfies Record<Decision | "expired", ApprovalState>;

/** Questions to people: asked once, answered once. */
export class ApprovalCommands {
  readonly #parts: Parts;
  readonly #insert: Database.Statement<[NewQuestion]>;
  readonly #wait: Database.Statement<[string, number, number]>;
  readonly #find: Database.Statement<[string], QuestionRow>;
  readonly #resolve: Database.Statement<[ApprovalState, string, number, string]>;
  readonly #approveCall: Database.Statement<[number, number, number]>;
  readonly #grant: Database.Statement<[number, string, string]>;

  constructor(db: Database.Database, parts: Parts) {
    this.#parts = parts;
    this.#insert = db.prepare(`
      INSERT INTO approvals (id, run, session, step, position, reason, pattern, created_at, expires_at, state)
      VALUES (@id, @run, @session, @step, @position, @reason, @pattern, @at, @expiresAt, 'pending')`);
    this.#wait = db.prepare("UPDATE runs SET state = 'waiting', approval = ?, active_ms = ? WHERE key = ?");
    this.#find = db.prepare(`
      SELECT ${approvalColumns}, a.run, a.step, a.position FROM ${approvalTables} WHERE a.id = ${parameter}`);
    this.#resolve = db.prepare("UPDATE approvals SET state = ?, decided_by = ?, decided_at = ? WHERE id = ?");
    this.#approveCall = db.prepare(
      "UPDATE calls SET approved = 1 WHERE run = ? AND step = ? AND position = ?",
    );
    this.#grant = db.prepare("INSERT OR IGNORE INTO grants (session, tool, pattern) VALUES (?, ?, ?)");
  }

  /** Refused also where the call is not open: there is nothing to ask about. */
  ask(question: AskApproval): { readonly kind: "asked" } | Fenced {
    const { runs, ledger, journal, lanes } = this.#parts;
    const { id, at, call } = question;
    const run = runs.active(call.runId, call.attempt);
    const asked = run === null ? null : ledger.find(run, call.step, call.index);
    if (run === null || run.row.state !== "running" || asked?.state !== "pending") return fenced;
    this.#insert.run({
      id,
      run: run.key,
      session: run.lane.key,
      step: call.step,
      position: call.index,
      reason: question.reason,
      pattern: question.pattern,
      at,
      expiresAt: question.expiresAt,
    });
    this.#wait.run(id, question.activeMs, run.key);
    const { tool, callId } = asked;
    journal.append(run.lane, run, at, { type: "approval.requested", approvalId: id, tool, callId });
    journal.append(run.lane, run, at, { type: "run.waiting", approvalId: id });
    lanes.save(run.lane, at);
    return { kind: "asked" };
  }

  decide(answer: Answer): Decided {
    const row = this.#find.get(answer.id);
    if (row === undefined) return { kind: "refused", code: "not_found", approval: null };
    const run = this.#parts.runs.find(row.runId);
    if (row.state !== "pending" || run === null || this.#isRetry(answer)) {
      return { kind: "refused", code: "approval_decided", approval: approvalOf(row) };
    }
    const state = stateAfter[answer.outcome];
    this.#resolve.run(state, answer.by, answer.at, answer.id);
    this.#tellResolved(run, answer);
    if (state === "approved") this.#approve(run, row, answer.outcome);
    else this.#deny(run, row, answer);
    if (answer.idempotency !== null) this.#parts.keys.put(answer.idempotency, row.runId, answer.at);
    this.#parts.lanes.save(run.lane, answer.at);
    const approval = { ...approvalOf(row), state, decidedBy: answer.by, decidedAt: answer.at };
    return { kind: "decided", approval };
  }

  /** The retry of an answer that has been given must not answer the next question as well. */
  #isRetry({ idempotency, at }: Answer): boolean {
    return idempotency !== null && this.#parts.keys.look(idempotency, at).kind !== "new";
  }

  #approve(run: OpenRun, row: QuestionRow, outcome: Answer["outcome"]): void {
    this.#approveCall.run(row.run, row.step, row.position);
    if (outcome === "always" && row.pattern !== null) this.#grant.run(run.lane.key, row.tool, row.pattern);
  }

  #deny(run: OpenRun, row: QuestionRow, { deniedResult: text, at }: Answer): void {
    this.#parts.ledger.settle(run, row.step, row.position, { ok: false, text }, at);
  }

  #tellResolved(run: OpenRun, { id, outcome, by, at }: Answer): void {
    this.#parts.journal.append(run.lane, run, at, { type: "approval.resolved", approvalId: id, outcome, by });
  }
}

function approvalOf({ run: _run, step: _step, position: _position, ...approval }: QuestionRow): Approval {
  return approval;
}
