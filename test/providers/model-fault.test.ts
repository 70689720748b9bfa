import { describe, expect, test } from "vitest";
import {
  beforeStart,
  causedByRequest,
  classifyError,
  errorReport,
  fault,
  retryAfter,
} from "../../src/providers/model-fault.ts";
import { verifies } from "../support/verifies.ts";

const context = { scrub: (text: string) => text };
const classify = (status: number, error?: Record<string, unknown>) =>
  classifyError("p", status, error === undefined ? undefined : errorReport({ error }), context);

verifies("W63", "statuses and error kinds have one reading", () => {
  const table: [number, Record<string, unknown> | undefined, string, boolean][] = [
    [400, { message: "no such parameter" }, "provider_rejected", false],
    [400, { message: "x", code: "context_length_exceeded" }, "context_too_long", false],
    [400, { message: "prompt is too long: 9 tokens > 5 maximum" }, "context_too_long", false],
    [401, { message: "bad key" }, "provider_auth", false],
    [402, { message: "credits" }, "provider_auth", false],
    [403, undefined, "provider_auth", false],
    [404, { message: "no such model" }, "provider_rejected", false],
    [408, undefined, "provider_timeout", true],
    [409, undefined, "provider_unavailable", true],
    [422, undefined, "provider_rejected", false],
    [429, { message: "slow down" }, "provider_rate_limited", true],
    [429, { code: "insufficient_quota" }, "provider_auth", false],
    [500, undefined, "provider_unavailable", true],
    [503, undefined, "provider_unavailable", true],
    [504, undefined, "provider_timeout", true],
    [529, { type: "overloaded_error" }, "provider_unavailable", true],
    [302, undefined, "provider_bad_answer", false],
    [200, { code: 429 }, "provider_rate_limited", true],
    [200, { code: "rate_limit_exceeded" }, "provider_rate_limited", true],
    [200, { type: "invalid_request_error", message: "maximum context length" }, "context_too_long", false],
    [200, { type: "authentication_error" }, "provider_auth", false],
    [200, { type: "overloaded_error" }, "provider_unavailable", true],
    [200, { message: "odd" }, "provider_bad_answer", true],
  ];
  for (const [status, error, code, retryable] of table) {
    expect(classify(status, error), `${status} ${JSON.stringify(error)}`).toMatchObject({ code, retryable });
  }
});

test("only what the request caused is no news about the provider's health", () => {
  expect(["provider_rejected", "context_too_long"].map((code) => code)).toEqual(
    [classify(400, {}), classify(400, { code: "context_length_exceeded" })]
      .filter(causedByRequest)
      .map((f) => f.code),
  );
  expect(causedByRequest(classify(500))).toBe(false);
});

describe("what an error body says", () => {
  test.each([
    [{ error: "text" }, { message: "text", status: 0 }],
    [{ error: { message: "m", type: "t", code: "c" } }, { message: "m", kind: "t c", status: 0 }],
    [{ error: { code: 502 } }, { message: "", status: 502 }],
    [{ object: "error", message: "m" }, { message: "m" }],
    [{ error: null }, undefined],
    [{ choices: [] }, undefined],
    [undefined, undefined],
  ])("%j", (body, wanted) => {
    const report = errorReport(body);
    if (wanted === undefined) expect(report).toBeUndefined();
    else expect(report).toMatchObject(wanted);
  });

  test("a long reason is cut", () => {
    expect(classify(400, { message: "x".repeat(9_000) }).message.length).toBe(500);
    expect(beforeStart(fault("provider_auth", "m", { retryable: false }))).toEqual({
      code: "provider_auth",
      message: "m",
      retryable: false,
      started: false,
      partial: "",
    });
  });
});

test.each([
  [{ "retry-after": "7" }, 7],
  [{ "retry-after": "0.5" }, 1],
  [{ "retry-after-ms": "1500", "retry-after": "9" }, 2],
  [{ "retry-after": "Thu, 01 Jan 1970 00:01:30 GMT" }, 30],
  [{ "retry-after": "Thu, 01 Jan 1970 00:00:00 GMT" }, 0],
  [{ "retry-after": "soon" }, undefined],
  [{}, undefined],
])("%j asks to wait %s s", (headers, wanted) => {
  expect(retryAfter(headers, 60_000)).toBe(wanted);
});
