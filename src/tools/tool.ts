import type { Autonomy, Effect } from "../domain/autonomy.ts";
import type { ToolDefinition } from "../domain/message.ts";

/** The port that every tool implements; `defineTool` builds one from a schema. */
export interface Tool {
  readonly definition: ToolDefinition;
  /** Below this level the tool is neither offered nor run. */
  readonly minAutonomy: Autonomy;
  /** The least effect that any call of the tool can have; decides whether it is offered. */
  readonly leastEffect: Effect;
  /** Checks the model's arguments. Never throws: what is wrong is a text for the model. */
  prepare(json: string): PreparedCall | { readonly kind: "invalid"; readonly message: string };
}

/** A call whose arguments are known to be valid. */
export interface PreparedCall {
  readonly kind: "prepared";
  readonly effect: Effect;
  /**
   * What `/always` would allow in this session: the exact argument vector or a prefix that is shown to the
   * person; null where a standing permission would be a blank cheque (a whole shell).
   */
  readonly pattern: string | null;
  /** One line for the person who is asked, without secrets: `write_file notes.md (120 bytes)`. */
  readonly summary: string;
  /** Runs the call. Failures are results, not exceptions; a throw is a defect and becomes a result too. */
  run(context: ToolContext): Promise<ToolResult>;
}

export interface ToolContext {
  /** The agent's workspace folder: working directory of processes and root of relative paths. */
  readonly workspace: string;
  readonly agent: string;
  readonly sessionId: string;
  readonly runId: string;
  readonly callId: string;
  /** Aborts when the run is cancelled; child processes must be gone within a second. */
  readonly signal: AbortSignal;
}

/** `text` goes to the model, scrubbed and capped by the caller. */
export interface ToolResult {
  readonly ok: boolean;
  readonly text: string;
}
