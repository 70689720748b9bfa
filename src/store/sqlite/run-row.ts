import type { AgentName, ApprovalId, Principal, RunId, SessionId } from "../../domain/ids.ts";
import { noUsage, type Usage } from "../../domain/message.ts";
import type { FinishReason, Run, RunError, RunInput, RunKind, RunState } from "../../domain/run.ts";
import { splitLines } from "./wire.ts";

/** A run without its input, as a row: what the writer hands back and the readers select. */
export interface RunRow {
  readonly key: number;
  readonly id: RunId;
  readonly sessionId: SessionId;
  readonly principal: Principal;
  readonly agent: AgentName;
  readonly kind: RunKind;
  readonly state: RunState;
  readonly ephemeral: 0 | 1;
  readonly keyed: 0 | 1;
  readonly attempt: number;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly activeMs: number;
  readonly approvalId: ApprovalId | null;
  readonly finishReason: FinishReason | null;
  readonly output: string | null;
  readonly clientCalls: string | null;
  readonly error: string | null;
  readonly usage: string | null;
}

/** A run's input: options and tools as one JSON object, its messages one JSON a line. */
export interface InputRow {
  readonly input: string;
  readonly conversation: string | null;
}

/** Columns of `RunRow`; `runs` is aliased r and its session s. `output` may live in the final message. */
export const runColumns = `
  r.key, r.id, s.id AS sessionId, r.principal, r.agent, r.kind, r.state, r.ephemeral, r.keyed, r.attempt,
  r.created_at AS createdAt, r.started_at AS startedAt, r.ended_at AS endedAt, r.active_ms AS activeMs,
  r.approval AS approvalId, r.finish_reason AS finishReason,
  CASE WHEN r.output_seq IS NULL THEN r.output ELSE (
    SELECT CAST(m.wire AS TEXT) ->> '$.content' FROM messages m
    WHERE m.session = r.session AND m.seq = r.output_seq) END AS output,
  r.client_calls AS clientCalls, r.error, r.usage`;

/** Columns of `InputRow`: the messages of a started stateful run are in its session's history. */
export const inputColumns = `
  r.input, CASE WHEN r.input_seq IS NULL THEN r.conversation ELSE (
    SELECT group_concat(CAST(m.wire AS TEXT), char(10) ORDER BY m.seq) FROM messages m
    WHERE m.session = r.session AND m.seq >= r.input_seq AND m.seq < r.input_seq + r.input_count)
  END AS conversation`;

/** `input` may read lazily: most readers of an ended run never look at it, and it may be large. */
export function decodeRun(row: RunRow, input: () => RunInput): Run {
  let loaded: RunInput | undefined;
  const clientCalls: Run["clientCalls"] = row.clientCalls === null ? [] : JSON.parse(row.clientCalls);
  const error: RunError | null = row.error === null ? null : JSON.parse(row.error);
  return {
    id: row.id,
    sessionId: row.sessionId,
    principal: row.principal,
    agent: row.agent,
    kind: row.kind,
    state: row.state,
    ephemeral: row.ephemeral === 1,
    keyed: row.keyed === 1,
    attempt: row.attempt,
    get input() {
      loaded ??= input();
      return loaded;
    },
    createdAt: row.createdAt,
    startedAt: row.startedAt,
    endedAt: row.endedAt,
    activeMs: row.activeMs,
    finishReason: row.finishReason,
    output: row.output,
    clientCalls,
    error,
    usage: decodeUsage(row.usage),
    approvalId: row.approvalId,
  };
}

export function decodeInput(row: InputRow): RunInput {
  const rest: Omit<RunInput, "messages"> = JSON.parse(row.input);
  const messages: RunInput["messages"] = splitLines(row.conversation ?? "").map((wire) => JSON.parse(wire));
  return { messages, ...rest };
}

export function decodeUsage(column: string | null): Usage {
  if (column === null) return noUsage;
  const usage: Usage = JSON.parse(column);
  return usage;
}
