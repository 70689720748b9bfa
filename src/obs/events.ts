/**
 * The business events: one function for each, which writes log and metric consistently. None of them throws,
 * blocks, or shows what people or models say.
 */
import { asId, type RunId } from "../domain/ids.ts";
import type { Usage } from "../domain/message.ts";
import type { ExitReport } from "../kernel/exit-report.ts";
import { errorFields, framesOf, messageOf } from "./describe-error.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import { traceIdOf } from "./trace.ts";

/** Carried by everything that happens in a run. */
export interface RunFields {
  readonly session_id: string;
  readonly run_id: string;
  /** W3C trace id, 32 hex digits. */
  readonly trace_id: string;
}

export interface ModelFields extends RunFields {
  readonly provider: string;
  readonly model: string;
}

/** Times are in milliseconds; `error` and `reason` are codes, never texts of people or providers. */
export interface BusinessEvents {
  /** A lane begins to work. */
  sessionStart(fields: { readonly session_id: string }): void;
  /** A lane has nothing left to do (`idle`), or the daemon stops (`shutdown`). */
  sessionEnd(fields: { readonly session_id: string; readonly reason: string }): void;
  /** Open work of a former process is taken up again. */
  sessionRestored(fields: { readonly session_id: string; readonly message_count: number }): void;
  sessionReset(fields: { readonly session_id: string }): void;
  agentStart(fields: RunFields & { readonly user_id: string }): void;
  runQueued(fields: { readonly session_id: string; readonly run_id: string }): void;
  /** A message was not accepted. */
  runRefused(fields: { readonly reason: string }): void;
  llmRequest(fields: ModelFields & { readonly message_count: number }): void;
  llmResponse(
    fields: ModelFields & {
      readonly duration_ms: number;
      readonly first_token_ms: number | null;
      readonly success: boolean;
      readonly error: string | null;
      readonly usage: Usage | null;
    },
  ): void;
  /** `args` is scrubbed, and logged at level debug only. */
  toolCallStart(
    fields: RunFields & { readonly tool_name: string; readonly call_id: string; readonly args: string },
  ): void;
  toolCallResult(
    fields: RunFields & {
      readonly tool_name: string;
      readonly call_id: string;
      readonly duration_ms: number;
      readonly success: boolean;
    },
  ): void;
  turnComplete(
    fields: RunFields & {
      readonly total_duration_ms: number;
      readonly outcome: string;
      readonly error: string | null;
    },
  ): void;
  /** Entries of the visible history before and after. */
  compactionComplete(fields: RunFields & { readonly before: number; readonly after: number }): void;
  approvalRequested(
    fields: RunFields & { readonly approval_id: string; readonly tool_name: string; readonly args: string },
  ): void;
  approvalResolved(
    fields: RunFields & {
      readonly approval_id: string;
      readonly tool_name: string;
      readonly decision: string;
    },
  ): void;
  /** A supervised child left unasked. */
  childExit(report: ExitReport): void;
  /** The store refused to work; it is tried again. */
  storeTrouble(fields: { readonly error: string }): void;
  /** Something threw that is nobody's expected failure. */
  defect(fields: { readonly where: string; readonly error: string; readonly stack?: string }): void;
  httpRequest(fields: {
    readonly request_id: string;
    readonly method: string;
    /** The route's pattern, not the path. */
    readonly route: string;
    readonly status: number;
    readonly duration_ms: number;
    /** The token's name; logged as `token_name`, since what follows a bare `token` is redacted. */
    readonly token: string | null;
  }): void;
  /** A request was turned away by authentication, a limit or a check of its origin. */
  requestRefused(fields: {
    readonly request_id: string;
    readonly code: string;
    readonly address: string;
    readonly token: string | null;
  }): void;
  /** How late the event loop ran since the last report. */
  lag(fields: { readonly p50: number; readonly p99: number; readonly max: number }): void;
}

/** A stall longer than this is worth a line in the log, milliseconds. */
const longStallMs = 250;

export function businessEvents(log: Log, metrics: Metrics): BusinessEvents {
  return {
    sessionStart: (fields) => log.debug("session_start", fields),
    sessionEnd: (fields) => log.debug("session_end", fields),
    sessionRestored: (fields) => log.info("session_restored", fields),
    sessionReset: (fields) => log.info("session_reset", fields),
    agentStart: (fields) => log.debug("agent_start", fields),
    runQueued: (fields) =>
      log.debug("run_queued", { ...fields, trace_id: traceIdOf(asId<RunId>(fields.run_id)) }),
    runRefused(fields) {
      metrics.record((to) => to.refused(fields.reason));
      log.warn("run_refused", fields);
    },
    llmRequest: (fields) => log.debug("llm_request", fields),
    llmResponse(fields) {
      metrics.record((to) => to.modelCall(fields));
      log[fields.success || fields.error === "cancelled" ? "debug" : "warn"]("llm_response", fields);
    },
    toolCallStart({ args, ...fields }) {
      log.info("tool_call_start", fields);
      log.debug("tool_call_arguments", { ...fields, args });
    },
    toolCallResult(fields) {
      metrics.record((to) => to.toolCall(fields.tool_name, fields.success, fields.duration_ms));
      log.info("tool_call_result", fields);
    },
    turnComplete(fields) {
      metrics.record((to) => to.runEnded(fields.outcome, fields.total_duration_ms));
      log.info("turn_complete", fields);
    },
    compactionComplete: (fields) => log.info("compaction_complete", fields),
    approvalRequested({ args, ...fields }) {
      log.info("approval_requested", fields);
      log.debug("tool_call_arguments", { ...fields, args });
    },
    approvalResolved(fields) {
      metrics.record((to) => to.approval(fields.decision));
      log.info("approval_resolved", fields);
    },
    childExit(report) {
      const { supervisor, child, reason, error, restarts, willRestart } = report;
      metrics.record((to) => to.childExit(supervisor, child, reason));
      const fields = { supervisor, child, reason, restarts, will_restart: willRestart };
      log.error("child_exit", error === undefined ? fields : { ...fields, ...errorFields(error) });
    },
    storeTrouble(fields) {
      metrics.record((to) => to.storeTrouble());
      log.error("store_trouble", { error: messageOf(fields.error) });
    },
    defect({ where, error, stack }) {
      metrics.record((to) => to.defect(where));
      const fields = { where, error: messageOf(error) };
      log.error("defect", stack === undefined ? fields : { ...fields, stack: framesOf(stack) });
    },
    httpRequest({ token, ...fields }) {
      const { method, route, status, duration_ms } = fields;
      metrics.record((to) => to.httpRequest(method, route, status, duration_ms));
      log.debug("http_request", { ...fields, token_name: token });
    },
    requestRefused({ token, ...fields }) {
      metrics.record((to) => to.refused(fields.code));
      log.info("request_refused", { ...fields, token_name: token });
    },
    lag(fields) {
      metrics.record((to) => to.lag(fields));
      if (fields.max >= longStallMs) log.warn("lag", fields);
    },
  };
}
