/**
 * Errors that cross a boundary carry a catalogue entry: a stable code, what a caller may do about it
 * and how each surface shows it. Expected failures inside the process are values, not errors.
 */
export interface ErrorEntry {
  /** HTTP status that the gateway answers with. */
  readonly status: number;
  /** Whether the same request may succeed later without a change. */
  readonly retryable: boolean;
  /** Exit code of the command line: 1 failed, 2 usage, 69 not reachable, 78 configuration. */
  readonly exit: number;
  /** What the person who sees the error can do next, one sentence. */
  readonly cure: string;
}

/** An error with a catalogue code. `C` is the union of the catalogue's codes. */
export class CodedError<C extends string = string> extends Error {
  override readonly name = "CodedError";
  readonly code: C;
  /** The field of the caller's input that is wrong, where one is. */
  readonly param: string | undefined;
  /** Whole seconds after which a retry makes sense, where known. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    code: C,
    message: string,
    options: { cause?: unknown; param?: string; retryAfterSeconds?: number } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.param = options.param;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** Thrown where the compiler has proven that no case is left. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";
  constructor(value: never) {
    super(`unreachable case: ${JSON.stringify(value)}`);
  }
}

/** Turns whatever was thrown into an Error, keeping Errors as they are. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown), { cause: thrown });
}
