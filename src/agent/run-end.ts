/** The one end of a run: what is stored of it, and what is told about it. */
import { errorCatalogue, type ErrorCode } from "../domain/error-catalogue.ts";
import { type MessageId, newId } from "../domain/ids.ts";
import { noUsage } from "../domain/message.ts";
import type { EndedRunState, Run, RunError } from "../domain/run.ts";
import { Unreachable } from "../kernel/errors.ts";
import type { FinishRun } from "../store/ports.ts";
import type { CancelReason, Ending } from "./loop.ts";
import { tracing } from "./model-step.ts";
import type { ModelFailure } from "./provider.ts";
import type { RunServices } from "./run-services.ts";
import { FencedError } from "./tool-step.ts";

export interface RunEnd {
  readonly ending: Ending;
  /** Text of the last model call as it was shown. */
  readonly shown: string;
  /** Whether that text is in the history already, with the tool calls it announced. */
  readonly recorded: boolean;
  readonly activeMs: number;
}

/** Commits the end. Throws `FencedError` if the run was ended elsewhere. */
export async function endRun(
  services: RunServices,
  run: Run,
  end: RunEnd,
): Promise<{ readonly run: Run; readonly queued: boolean }> {
  const finished = await services.store.runs.finish({
    runId: run.id,
    attempt: run.attempt,
    usage: noUsage,
    activeMs: end.activeMs,
    at: services.clock.now(),
    ...describeEnd(end, services.clock.now()),
  });
  if (finished.kind === "refused") throw new FencedError(run.id);
  reportEnd(services, finished.run);
  return finished;
}

/** Ends a run that nobody works on: queued, waiting, or interrupted beyond repair. */
export async function endIdleRun(
  services: RunServices,
  run: Run,
  end: {
    readonly state: EndedRunState;
    readonly reason: string;
    readonly error: RunError | null;
    readonly unsettledResult: string;
  },
): Promise<{ readonly run: Run; readonly queued: boolean } | null> {
  const finished = await services.store.runs.finish({
    ...withoutMessage,
    ...end,
    runId: run.id,
    attempt: run.attempt,
    usage: noUsage,
    activeMs: run.activeMs,
    at: services.clock.now(),
  });
  if (finished.kind === "refused") return null;
  reportEnd(services, finished.run);
  return finished;
}

export const runError = (code: ErrorCode, message?: string): RunError => ({
  code,
  message: message ?? errorCatalogue[code].cure,
});

function reportEnd(services: RunServices, run: Run): void {
  services.obs.events.turnComplete({
    ...tracing(services, run),
    total_duration_ms: (run.endedAt ?? run.createdAt) - run.createdAt,
    outcome: run.state,
    error: run.error?.code ?? null,
  });
}

type Stored = Omit<FinishRun, "runId" | "attempt" | "usage" | "activeMs" | "at">;

const withoutMessage: Stored = {
  state: "failed",
  finishReason: null,
  message: null,
  output: null,
  error: null,
  reason: "",
  unsettledResult: "",
};

function describeEnd(
  { ending, shown, recorded }: RunEnd,
  at: number,
): Stored & { readonly usage?: FinishRun["usage"] } {
  switch (ending.kind) {
    case "answered": {
      const { answer } = ending;
      const extra = answer.extra === undefined ? null : JSON.stringify(answer.extra);
      return {
        ...withoutMessage,
        state: "completed",
        finishReason: answer.finishReason === "tool_calls" ? "stop" : answer.finishReason,
        message: assistantMessage(answer.text, extra, at),
        output: answer.text,
        usage: answer.usage,
      };
    }
    case "client_calls":
      return { ...withoutMessage, state: "completed", finishReason: "tool_calls", output: shown };
    case "failed":
      return {
        ...withoutMessage,
        ...partial(recorded ? "" : shown, at),
        error: failureError(ending.failure),
        unsettledResult: "Not run.",
      };
    case "cancelled":
      return { ...withoutMessage, ...partial(recorded ? "" : shown, at), ...cancelled(ending.reason) };
    default:
      throw new Unreachable(ending);
  }
}

const assistantMessage = (text: string, extra: string | null, at: number): FinishRun["message"] => ({
  id: newId<MessageId>(at),
  wire: JSON.stringify({ role: "assistant", content: text }),
  extra,
});

/** What had been said before a run broke off is kept, and the next turn sees it. */
const partial = (shown: string, at: number): Pick<Stored, "message" | "output"> =>
  shown === ""
    ? { message: null, output: null }
    : { message: assistantMessage(shown, null, at), output: shown };

const failureError = ({ code, message, retryAfterSeconds }: ModelFailure): RunError => ({
  code,
  message,
  ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
});

function cancelled(reason: CancelReason): Pick<Stored, "state" | "reason" | "error" | "unsettledResult"> {
  if (reason === "turn_timeout") {
    return {
      state: "failed",
      reason,
      error: runError("turn_timeout"),
      unsettledResult: "Stopped: the turn ran out of time.",
    };
  }
  const told = reason === "superseded" ? "Withdrawn: superseded by a new message." : "Stopped by the user.";
  return { state: "cancelled", reason, error: null, unsettledResult: told };
}
