import { toError } from "./errors.ts";

/**
 * One record for every exit that nobody asked for. It names the child and the error and holds nothing of the
 * child's state, so that no payload can reach a log through a crash.
 */
export interface ExitReport {
  /** Id of the supervisor. */
  readonly supervisor: string;
  /** Id, or key, of the child. */
  readonly child: string;
  readonly reason: ExitReason;
  readonly error?: ErrorSummary;
  /** Restarts that the supervisor has spent within its current period, this one included. */
  readonly restarts: number;
  readonly willRestart: boolean;
}

/**
 * - `crashed`: the child's promise rejected, or a stray error was raised in its context.
 * - `exited`: it returned although it is meant to run for ever.
 * - `abandoned`: it ignored its signal past the deadline; it may still be running and nobody waits for it.
 * - `late`: news of a life that had already ended or been abandoned: its end, or an error that it left behind.
 */
export type ExitReason = "crashed" | "exited" | "abandoned" | "late";

/** What may be told of an error. The message and the stack are cut to a bound and not scrubbed. */
export interface ErrorSummary {
  readonly name: string;
  readonly code?: string;
  readonly message: string;
  readonly stack?: string;
}

const MAX_MESSAGE_CHARS = 1_000;
const MAX_STACK_CHARS = 8_000;

export function summarize(thrown: unknown): ErrorSummary {
  const error = toError(thrown);
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  return {
    name: error.name,
    ...(code === undefined ? {} : { code }),
    message: error.message.slice(0, MAX_MESSAGE_CHARS),
    ...(error.stack === undefined ? {} : { stack: error.stack.slice(0, MAX_STACK_CHARS) }),
  };
}
