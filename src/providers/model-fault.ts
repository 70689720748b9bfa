import type { ModelFailure } from "../agent/provider.ts";
import { asRecord, asText, type JsonRecord } from "./json-value.ts";

/** A classified failure before it is known how much of the answer had been passed on. */
export type Fault = Omit<ModelFailure, "started" | "partial">;

/** Texts that leave a provider: at most 500 characters, secrets replaced. */
export type Scrub = (text: string) => string;

const MAX_MESSAGE = 500;

export function fault(
  code: ModelFailure["code"],
  message: string,
  options: { retryable: boolean; retryAfterSeconds?: number | undefined },
): Fault {
  const { retryable, retryAfterSeconds } = options;
  return {
    code,
    message: message.length <= MAX_MESSAGE ? message : `${message.slice(0, MAX_MESSAGE - 1)}…`,
    retryable,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
}

/** A failure of a call of which nothing had been passed on. */
export const beforeStart = (of: Fault): ModelFailure => ({ ...of, started: false, partial: "" });

/**
 * Whether the request itself, rather than the provider, is to blame: every attempt and every model would
 * answer the same, and the provider's health is not in question.
 */
export const causedByRequest = (failure: Fault): boolean =>
  failure.code === "provider_rejected" || failure.code === "context_too_long";

/** What a provider says about an error, in the shape that OpenAI, Anthropic and their followers share. */
export interface ErrorReport {
  readonly message: string;
  /** `type`, `code` and `status` joined: what wordings of machines there are, for matching. */
  readonly kind: string;
  /** An HTTP status inside the report; 0 where none is. */
  readonly status: number;
}

/** Finds the error in a body; undefined where the body reports none. */
export function errorReport(body: unknown): ErrorReport | undefined {
  const record = asRecord(body);
  const raw = record?.["error"] ?? (record?.["object"] === "error" ? record : undefined);
  if (raw === undefined || raw === null) return undefined;
  if (typeof raw === "string") return { message: raw, kind: "", status: 0 };
  const error: JsonRecord = asRecord(raw) ?? {};
  const code = error["code"];
  const status = Number(error["status_code"] ?? code);
  return {
    message: asText(error["message"]) ?? "",
    kind: [error["type"], code, error["status"]].filter((part) => typeof part === "string").join(" "),
    status: Number.isInteger(status) && status >= 400 && status <= 599 ? status : 0,
  };
}

const CONTEXT_TOO_LONG =
  /context.?(length|window)|maximum context|prompt is too long|too many (input )?tokens|exceeds? the (model'?s )?(maximum|context)/i;

/** Error kinds that stand for a status where the status itself says nothing (200, or inside a stream). */
const STATUS_OF_KIND: readonly (readonly [RegExp, number])[] = [
  [/rate.?limit|too_many_requests/i, 429],
  [/overloaded/i, 529],
  [/authentication|invalid_api_key|permission|unauthori[sz]ed/i, 401],
  [/billing|insufficient_quota|insufficient_credits/i, 402],
  [/invalid_request|not_found|unsupported/i, 400],
  [/server_error|api_error|internal|unavailable/i, 500],
  [/timeout/i, 504],
];

/**
 * Classifies an error answer. `status` is the HTTP status, or 200 for an error object in an answer that had
 * been accepted. The provider's own words are passed on only where the caller can act on them, scrubbed.
 */
export function classifyError(
  provider: string,
  status: number,
  report: ErrorReport | undefined,
  context: { readonly scrub: Scrub; readonly retryAfterSeconds?: number | undefined },
): Fault {
  const kind = report?.kind ?? "";
  const effective = status >= 400 ? status : report?.status || statusOfKind(kind);
  const reason = report === undefined || report.message === "" ? "" : `: ${context.scrub(report.message)}`;
  const retryAfterSeconds = context.retryAfterSeconds;
  if (CONTEXT_TOO_LONG.test(kind) || (effective === 400 && CONTEXT_TOO_LONG.test(report?.message ?? ""))) {
    return fault("context_too_long", `${provider}: the conversation is too long${reason}`, {
      retryable: false,
    });
  }
  // The account, not the request: waiting does not help, and the wording often quotes the key.
  if (effective === 401 || effective === 403 || effective === 402 || kind.includes("insufficient_quota")) {
    const what = effective === 401 || effective === 403 ? "refused the key" : "reports an exhausted account";
    return fault("provider_auth", `${provider} ${what} (${effective})`, { retryable: false });
  }
  if (effective === 429) {
    return fault("provider_rate_limited", `${provider} limits requests (429)${reason}`, {
      retryable: true,
      retryAfterSeconds,
    });
  }
  if (effective === 408 || effective === 504) {
    return fault("provider_timeout", `${provider} gave up waiting (${effective})`, { retryable: true });
  }
  if (effective >= 500 || effective === 409 || effective === 425) {
    return fault("provider_unavailable", `${provider} is not available (${effective})`, {
      retryable: true,
      retryAfterSeconds,
    });
  }
  if (effective >= 400) {
    return fault("provider_rejected", `${provider} refused the request (${effective})${reason}`, {
      retryable: false,
    });
  }
  const what = status === 200 ? "reported an error" : `answered with status ${status}`;
  return fault("provider_bad_answer", `${provider} ${what}${reason}`, { retryable: status === 200 });
}

function statusOfKind(kind: string): number {
  return STATUS_OF_KIND.find(([pattern]) => pattern.test(kind))?.[1] ?? 0;
}

/**
 * Seconds that an answer asks to wait: `retry-after-ms` (OpenAI), or `Retry-After` in seconds or as a date
 * (RFC 9110 §10.2.3). Rounded up; undefined where nothing sensible is given.
 */
export function retryAfter(headers: JsonRecord, now: number): number | undefined {
  const milliseconds = Number(headers["retry-after-ms"] ?? NaN);
  if (milliseconds >= 0) return Math.ceil(milliseconds / 1000);
  const value = asText(headers["retry-after"])?.trim();
  if (value === undefined || value === "") return undefined;
  if (/^\d+(\.\d+)?$/.test(value)) return Math.ceil(Number(value));
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - now) / 1000));
}
