import type Database from "better-sqlite3";
import type { MessageId } from "../../domain/ids.ts";
import type { Run } from "../../domain/run.ts";
import type { NewCall, RecordStep } from "../ports.ts";
import type { History } from "./history.ts";
import type { Journal } from "./journal.ts";
import type { OpenRun } from "./open-runs.ts";

/** A result for the model. */
export interface CallResult {
  readonly ok: boolean;
  readonly text: string;
}

export interface CallRow {
  readonly position: number;
  readonly callId: string;
  readonly tool: string;
  readonly effect: string;
  readonly client: 0 | 1;
  readonly state: "pending" | "started" | "settled";
  readonly startedAt: number | null;
  readonly result: string | null;
  readonly arguments: string;
}

interface StepRow {
  readonly messageId: MessageId;
  readonly settled: 0 | 1;
  readonly wire: string;
  readonly extra: string | null;
}

interface NewCallColumns extends CallRow {
  readonly run: number;
  readonly step: number;
  readonly ok: number | null;
  readonly raw: string | null;
}

type CallPlace = [run: number, step: number, position: number];

const callColumns = `position, call_id AS callId, tool, effect, client, state, started_at AS startedAt, result, arguments`;

/**
 * The calls of a run's steps and the pair rule: a model answer and the results of its calls join the history
 * together, when the last call that is ours to answer has settled. A settled call never changes again.
 */
export class StepLedger {
  readonly #history: History;
  readonly #journal: Journal;
  readonly #insertStep: Database.Statement<[number, number, string, number, Buffer, string | null]>;
  readonly #insertCall: Database.Statement<[NewCallColumns]>;
  readonly #call: Database.Statement<CallPlace, CallRow>;
  readonly #calls: Database.Statement<[number, number], CallRow>;
  readonly #unsettled: Database.Statement<[number, number], number>;
  readonly #startCall: Database.Statement<[number, ...CallPlace]>;
  readonly #settleCall: Database.Statement<[number, string, ...CallPlace]>;
  readonly #moveResult: Database.Statement<[number, ...CallPlace]>;
  readonly #step: Database.Statement<[number, number], StepRow>;
  readonly #settleStep: Database.Statement<[number, number]>;
  readonly #moveStep: Database.Statement<[number, number, number]>;
  readonly #setOpenStep: Database.Statement<[number | null, number]>;

  constructor(db: Database.Database, history: History, journal: Journal) {
    this.#history = history;
    this.#journal = journal;
    const thatCall = "WHERE run = ? AND step = ? AND position = ?";
    this.#insertStep = db.prepare(`
      INSERT INTO steps (run, step, message_id, created_at, settled, wire, extra) VALUES (?, ?, ?, ?, 0, ?, ?)`);
    this.#insertCall = db.prepare(`
      INSERT INTO calls (run, step, position, call_id, tool, effect, client, state, approved, started_at, ok,
        result, arguments, raw)
      VALUES (@run, @step, @position, @callId, @tool, @effect, @client, @state, 0, @startedAt, @ok,
        @result, @arguments, @raw)`);
    this.#call = db.prepare(`SELECT ${callColumns} FROM calls ${thatCall}`);
    this.#calls = db.prepare(`SELECT ${callColumns} FROM calls WHERE run = ? AND step = ? ORDER BY position`);
    this.#unsettled = db
      .prepare<[number, number], number>(
        "SELECT count(*) FROM calls WHERE run = ? AND step = ? AND client = 0 AND state <> 'settled'",
      )
      .pluck();
    this.#startCall = db.prepare(`UPDATE calls SET state = 'started', started_at = ? ${thatCall}`);
    this.#settleCall = db.prepare(
      `UPDATE calls SET state = 'settled', ok = ?, result = ?, raw = NULL ${thatCall}`,
    );
    this.#moveResult = db.prepare(`UPDATE calls SET result = NULL, message_seq = ? ${thatCall}`);
    this.#step = db.prepare(`
      SELECT message_id AS messageId, settled, CAST(wire AS TEXT) AS wire, extra
      FROM steps WHERE run = ? AND step = ?`);
    this.#settleStep = db.prepare("UPDATE steps SET settled = 1 WHERE run = ? AND step = ?");
    this.#moveStep = db.prepare(
      "UPDATE steps SET wire = NULL, extra = NULL, message_seq = ? WHERE run = ? AND step = ?",
    );
    this.#setOpenStep = db.prepare("UPDATE runs SET open_step = ? WHERE key = ?");
  }

  /** Stores a model answer; true if nothing of it is left for us to do. */
  record(run: OpenRun, answer: RecordStep): boolean {
    const { step, at } = answer;
    if (run.openStep !== null) throw new Error(`step ${run.openStep} of run ${run.id} is still open`);
    this.#insertStep.run(run.key, step, answer.messageId, at, Buffer.from(answer.wire), answer.extra);
    answer.calls.forEach((call, position) => this.#recordCall(run, step, position, call, at));
    const settled = answer.calls.every((call) => call.client || call.result !== null);
    if (settled) this.#join(run, step, at);
    else this.#setOpenStep.run(step, run.key);
    return settled;
  }

  find(run: OpenRun, step: number, position: number): CallRow | null {
    return this.#call.get(run.key, step, position) ?? null;
  }

  /** False for a call with effects that has started before: it may have had them, so it never runs twice (D4). */
  start(run: OpenRun, step: number, position: number, at: number): boolean {
    const call = this.find(run, step, position);
    if (call === null || call.client === 1 || call.state === "settled") return false;
    if (call.state === "started" && call.effect !== "none") return false;
    this.#startCall.run(at, run.key, step, position);
    this.#told(run, step, call, at, { type: "tool.started" });
    return true;
  }

  /** Stores a result. Null if it is not open; else whether the step has settled, and so has joined the history. */
  settle(run: OpenRun, step: number, position: number, result: CallResult, at: number): boolean | null {
    const call = this.find(run, step, position);
    if (call === null || call.client === 1 || call.state === "settled") return null;
    this.#storeResult(run, step, call, result, at);
    const settled = this.#unsettled.get(run.key, step) === 0;
    if (settled) this.#join(run, step, at);
    return settled;
  }

  /**
   * Ends the open step of a run that ends. Calls without a result get `text`; with `awaitClient` the client's
   * calls stay open instead and are returned.
   */
  close(run: OpenRun, text: string, awaitClient: boolean, at: number): Run["clientCalls"] {
    const step = run.openStep;
    if (step === null) return [];
    const open = this.#calls.all(run.key, step).filter((call) => call.state !== "settled");
    const asked = awaitClient ? open.filter((call) => call.client === 1) : [];
    const passedOver = open.filter((call) => !asked.includes(call));
    const results = passedOver.map((call) => this.#storeResult(run, step, call, { ok: false, text }, at));
    const joined = this.#step.get(run.key, step)?.settled === 1;
    if (joined) this.#appendResults(run, step, results, at);
    else this.#join(run, step, at);
    if (asked.length > 0 && !run.ephemeral) run.lane.openCalls = JSON.stringify(asked.map((c) => c.callId));
    return asked.map((call) => ({ id: call.callId, name: call.tool, arguments: call.arguments }));
  }

  #recordCall(run: OpenRun, step: number, position: number, call: NewCall, at: number): void {
    const { callId, tool, result } = call;
    const state = result !== null ? "settled" : call.started ? "started" : "pending";
    // Only a call that we still have to run needs its arguments as the model wrote them.
    const needsRaw = state !== "settled" && !call.client && call.rawArguments !== call.scrubbedArguments;
    this.#insertCall.run({
      run: run.key,
      step,
      position,
      callId,
      tool,
      effect: call.effect,
      client: call.client ? 1 : 0,
      state,
      startedAt: call.started ? at : null,
      ok: result === null ? null : Number(result.ok),
      result: result?.text ?? null,
      arguments: call.scrubbedArguments,
      raw: needsRaw ? call.rawArguments : null,
    });
    this.#told(run, step, call, at, { type: "tool.requested" });
    if (call.started) this.#told(run, step, call, at, { type: "tool.started" });
    if (result !== null) this.#told(run, step, call, at, { type: "tool.finished", ok: result.ok });
  }

  #storeResult(run: OpenRun, step: number, call: CallRow, { ok, text }: CallResult, at: number): CallRow {
    this.#settleCall.run(Number(ok), text, run.key, step, call.position);
    this.#told(run, step, call, at, { type: "tool.finished", ok });
    return { ...call, state: "settled", result: text };
  }

  /** In call order; the step stays open while the client owes an answer. Ephemeral runs keep their steps apart. */
  #join(run: OpenRun, step: number, at: number): void {
    this.#settleStep.run(run.key, step);
    const calls = this.#calls.all(run.key, step);
    const answer = run.ephemeral ? undefined : this.#step.get(run.key, step);
    if (answer !== undefined) {
      const { messageId: id, wire, extra } = answer;
      const seq = this.#history.appendAssistant(run.lane, run, at, { id, wire, extra });
      this.#moveStep.run(seq, run.key, step);
      this.#appendResults(run, step, calls, at);
    }
    const owed = calls.some((call) => call.state !== "settled");
    this.#setOpenStep.run(owed ? step : null, run.key);
  }

  /** A result lives once: in its call until it joins the history, then there. */
  #appendResults(run: OpenRun, step: number, calls: readonly CallRow[], at: number): void {
    if (run.ephemeral) return;
    for (const { position, callId, result } of calls) {
      if (result === null) continue;
      const seq = this.#history.appendToolResult(run.lane, run, at, callId, result);
      this.#moveResult.run(seq, run.key, step, position);
    }
  }

  #told(
    run: OpenRun,
    step: number,
    call: { readonly callId: string; readonly tool: string },
    at: number,
    news:
      | { readonly type: "tool.requested" | "tool.started" }
      | { readonly type: "tool.finished"; readonly ok: boolean },
  ): void {
    this.#journal.append(run.lane, run, at, { ...news, step, callId: call.callId, tool: call.tool });
  }
}
