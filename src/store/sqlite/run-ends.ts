import type Database from "better-sqlite3";
import type { EventBody } from "../../domain/event.ts";
import { addUsage, noUsage, textOf, type WireMessage } from "../../domain/message.ts";
import { Unreachable } from "../../kernel/errors.ts";
import type { Fenced, FinishRun } from "../ports.ts";
import { fenced, type OpenRun } from "./open-runs.ts";
import type { Parts } from "./parts.ts";
import { decodeUsage, type RunRow } from "./run-row.ts";

export type FinishOutcome =
  { readonly kind: "finished"; readonly row: RunRow; readonly queued: boolean } | Fenced;

interface EndColumns {
  readonly key: number;
  readonly state: FinishRun["state"];
  readonly endedAt: number;
  readonly activeMs: number;
  readonly lastEvent: number;
  readonly finishReason: string | null;
  readonly output: string | null;
  readonly outputSeq: number | null;
  readonly clientCalls: string | null;
  readonly error: string | null;
  readonly usage: string;
}

/** The end of a run: nothing of it stays open, and its last words are in the history. */
export class RunEnds {
  readonly #parts: Parts;
  readonly #end: Database.Statement<[EndColumns]>;
  readonly #withdraw: Database.Statement<[number, string]>;

  constructor(db: Database.Database, parts: Parts) {
    this.#parts = parts;
    this.#end = db.prepare(`
      UPDATE runs SET state = @state, ended_at = @endedAt, active_ms = @activeMs, last_event = @lastEvent,
        finish_reason = @finishReason, output = @output, output_seq = @outputSeq, client_calls = @clientCalls,
        error = @error, usage = @usage, approval = NULL, open_step = NULL, message_ids = NULL
      WHERE key = @key`);
    this.#withdraw = db.prepare(`
      UPDATE approvals SET state = 'withdrawn', decided_by = 'system', decided_at = ?
      WHERE id = ? AND state = 'pending'`);
  }

  finish(request: FinishRun): FinishOutcome {
    const run = this.#parts.runs.find(request.runId);
    if (run === null || run.row.attempt !== request.attempt) return fenced;
    const row = this.#close(run, request);
    this.#parts.lanes.save(run.lane, request.at);
    return { kind: "finished", row, queued: run.queued };
  }

  /** The caller saves the lane. */
  expireQueued(run: OpenRun, at: number): void {
    this.#close(run, {
      state: "expired",
      reason: "queue_ttl",
      finishReason: null,
      message: null,
      output: null,
      error: null,
      usage: noUsage,
      activeMs: 0,
      unsettledResult: "",
      at,
    });
  }

  withdrawQuestion(run: OpenRun, at: number): void {
    const { approvalId } = run.row;
    if (approvalId === null || this.#withdraw.run(at, approvalId).changes === 0) return;
    const resolved = { type: "approval.resolved", approvalId, outcome: "withdrawn", by: "system" } as const;
    this.#parts.journal.append(run.lane, run, at, resolved);
  }

  /** In this order: open calls get their results, the last message follows them, the end follows all. */
  #close(run: OpenRun, ending: Omit<FinishRun, "runId" | "attempt">): RunRow {
    const { history, journal, ledger } = this.#parts;
    const { at, message, output } = ending;
    this.withdrawQuestion(run, at);
    const clientCalls = ledger.close(run, ending.unsettledResult, ending.finishReason === "tool_calls", at);
    // A run that never started has said nothing, and an ephemeral one has no history.
    const joins = message !== null && !run.ephemeral && run.row.state !== "queued";
    const seq = joins ? history.appendAssistant(run.lane, run, at, message) : null;
    journal.append(run.lane, run, at, endOf(ending, seq));

    const repeated = joins && saysExactly(message.wire, output);
    const { state, activeMs, finishReason } = ending;
    const columns = {
      state,
      endedAt: at,
      activeMs,
      finishReason,
      clientCalls: clientCalls.length === 0 ? null : JSON.stringify(clientCalls),
      error: ending.error === null ? null : JSON.stringify(ending.error),
      usage: JSON.stringify(
        run.row.usage === null ? ending.usage : addUsage(decodeUsage(run.row.usage), ending.usage),
      ),
    };
    this.#end.run({
      ...columns,
      key: run.key,
      lastEvent: run.lane.lastEvent,
      output: repeated ? null : output,
      outputSeq: repeated ? seq : null,
    });
    return { ...run.row, ...columns, output, approvalId: null };
  }
}

function endOf(ending: Omit<FinishRun, "runId" | "attempt">, messageSeq: number | null): EventBody {
  switch (ending.state) {
    case "completed":
      return { type: "run.completed", finishReason: ending.finishReason ?? "stop", messageSeq };
    case "failed":
      return { type: "run.failed", error: ending.error ?? { code: "internal", message: ending.reason } };
    case "cancelled":
      return { type: "run.cancelled", reason: ending.reason };
    case "expired":
      return { type: "run.expired", reason: ending.reason };
    default:
      throw new Unreachable(ending.state);
  }
}

/** Whether the message's text is the output, so that the run need not keep a copy. */
function saysExactly(wire: string, output: string | null): boolean {
  const message: WireMessage = JSON.parse(wire);
  return typeof message.content === "string" && textOf(message.content) === output;
}
