import type { Ending } from "../agent/live-run.ts";
import { BeamclawError, type ErrorCode, errorCatalogue } from "../domain/error-catalogue.ts";
import { toError } from "../kernel/errors.ts";

/** An error as it goes over HTTP: `body` is JSON text. */
export interface HttpError {
  readonly status: number;
  readonly body: string;
  /** Value of `Retry-After`; every 429 and 503 has one. */
  readonly retryAfterSeconds: number | null;
}

/** What a client waits where nobody knows better. */
const DEFAULT_RETRY_SECONDS = 2;

/** A refusal of the caller's input. `param` names the field in JSON path notation: `messages[0].content`. */
export const invalid = (param: string, message: string): BeamclawError =>
  new BeamclawError("invalid_request", `${param}: ${message}`, { param });

export const notFound = (what: string): BeamclawError => new BeamclawError("not_found", `${what} not found`);

/** Paths under `/v1` answer in OpenAI's shape, all others in ours. */
export const speaksOpenAi = (path: string): boolean => path === "/v1" || path.startsWith("/v1/");

/**
 * Turns whatever a handler, a hook or the framework threw into an error of the catalogue. Only what nobody
 * expected becomes `internal`; its text stays in the log.
 */
export function classify(thrown: unknown): BeamclawError {
  if (thrown instanceof BeamclawError) return thrown;
  const error = toError(thrown);
  const code = "code" in error ? error.code : undefined;
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE")
    return new BeamclawError("body_too_large", "the body is too large");
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") return invalid("content-type", "is not a media type");
  const status = "statusCode" in error ? error.statusCode : undefined;
  // The framework's own refusals of input (bad URL, wrong content length …) carry a 4xx and a safe text.
  if (typeof status === "number" && status >= 400 && status < 500) {
    return new BeamclawError("invalid_request", error.message, { cause: error });
  }
  return new BeamclawError("internal", "internal error", { cause: error });
}

/** How a run that ended without an answer reads to the client that waits for it. */
export function endFailure(ending: Ending): BeamclawError {
  const { run } = ending;
  const error = (ending.kind === "interrupted" ? ending.error : run.error) ?? {
    code: "overloaded",
    message: `the run ended as ${run.state}`,
  };
  const code: ErrorCode = isErrorCode(error.code) ? error.code : "internal";
  return new BeamclawError(code, error.message, {
    ...(error.retryAfterSeconds !== undefined && { retryAfterSeconds: error.retryAfterSeconds }),
  });
}

export function httpError(error: BeamclawError, openAi: boolean): HttpError {
  const { status, cure } = error.entry;
  const saysIt = error.code === "invalid_request" && error.param !== undefined;
  const message = withCure(error.message, status < 500 && !saysIt ? cure : "");
  const limited = status === 429 || status === 503;
  return {
    status,
    body: openAi ? openAiError(error, message) : JSON.stringify({ error: message, code: error.code }),
    retryAfterSeconds: limited ? Math.max(1, error.retryAfterSeconds ?? DEFAULT_RETRY_SECONDS) : null,
  };
}

/** `{"error":{…}}` with all four members, as OpenAI's schema wants them. */
export function openAiError(error: BeamclawError, message: string = error.message): string {
  return JSON.stringify({
    error: { message, type: openAiType(error.entry.status), param: error.param ?? null, code: error.code },
  });
}

function openAiType(status: number): string {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 409:
      return "conflict_error";
    case 429:
      return "rate_limit_error";
    default:
      return status < 500 ? "invalid_request_error" : "server_error";
  }
}

/** The two joined as sentences. */
function withCure(message: string, cure: string): string {
  if (cure === "") return message;
  return /[.!?]$/.test(message) ? `${message} ${cure}` : `${message}. ${cure}`;
}

const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(errorCatalogue, code);
