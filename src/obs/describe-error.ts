import { type ErrorSummary, summarize } from "../kernel/exit-report.ts";
import type { Scrubber } from "./scrubber.ts";

/** What a log may tell of an error: no state of the program, no text that it was working on. */
export interface ErrorFields {
  readonly name: string;
  readonly code?: string;
  /** At most `MAX_ERROR_MESSAGE` characters. */
  readonly error: string;
  /** Places only, innermost first: V8 puts the message, with all that it quotes, on top of a stack. */
  readonly stack?: string;
}

export const MAX_ERROR_MESSAGE = 500;
const MAX_FRAMES = 12;

/** Describes whatever was thrown, secrets redacted. */
export function describeError(thrown: unknown, scrubber: Pick<Scrubber, "scrubText">): ErrorFields {
  const { name, code, error, stack } = errorFields(summarize(thrown));
  return {
    name,
    ...(code !== undefined && { code }),
    error: scrubber.scrubText(error),
    ...(stack !== undefined && { stack: scrubber.scrubText(stack) }),
  };
}

/** The fields of an error that has been summarised already. Secrets are left to the log, which scrubs its lines. */
export function errorFields(summary: ErrorSummary): ErrorFields {
  const stack = framesOf(summary.stack);
  return {
    name: summary.name,
    ...(summary.code !== undefined && { code: summary.code }),
    error: messageOf(summary.message),
    ...(stack !== "" && { stack }),
  };
}

/** The message, cut, without the input that V8's JSON parser quotes in it. */
export const messageOf = (message: string): string =>
  message
    .replace(
      /(?:Unexpected token '[^']*', )?(?:\.\.\.)?"[\s\S]*" is not valid JSON/,
      "the text is not valid JSON",
    )
    .slice(0, MAX_ERROR_MESSAGE);

/** The places of a stack, one a line; "" where it names none. */
export const framesOf = (stack: string | undefined): string =>
  (stack ?? "")
    .split("\n")
    .filter((line) => /^\s+at /.test(line))
    .slice(0, MAX_FRAMES)
    .map((line) => line.trim())
    .join("\n");
