import type { RunState } from "../domain/run.ts";
import type { ConfigProblem } from "./config-problem.ts";
import type { Reload } from "./config-reload.ts";

/** What the routes under `/admin` and their client speak of. JSON keys are these names. */

export interface DaemonStatus {
  readonly pid: number;
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** Where HTTP clients reach it: `http://127.0.0.1:18800`. */
  readonly url: string;
  readonly provider: { readonly name: string; readonly reason: string };
  readonly autonomy: string;
  /** Open runs by state. */
  readonly runs: Readonly<Partial<Record<RunState, number>>>;
  readonly sessionsInMemory: number;
  /** Resident set of the process. */
  readonly memoryBytes: number;
  /** 99th percentile of the event loop's delay, milliseconds. */
  readonly eventLoopDelayMs: number;
  /** What keeps `/ready` from being green, for people; empty when all is well. */
  readonly problems: readonly string[];
  /** Features that are off because their secret is not there: `providers.openai: OPENAI_API_KEY is not set`. */
  readonly off: readonly string[];
}

export type ReloadOutcome =
  | ({ readonly kind: "ok"; readonly warnings: readonly ConfigProblem[] } & Reload)
  /** Nothing was applied. */
  | {
      readonly kind: "invalid";
      readonly problems: readonly ConfigProblem[];
      readonly warnings: readonly ConfigProblem[];
    };

/** The log's recent lines (JSON, one record each), oldest first, and those to come. */
export interface AdminLogs {
  recent(limit: number): readonly string[];
  /** Calls `listener` with every new line until the returned function is called. */
  follow(listener: (line: string) => void): () => void;
}
