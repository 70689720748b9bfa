import { expect, test } from "vitest";
import { BeamclawError } from "../../src/domain/error-catalogue.ts";
import { describeError, MAX_ERROR_MESSAGE } from "../../src/obs/describe-error.ts";
import { scrubText } from "../../src/obs/scrubber.ts";
import { verifies } from "../support/verifies.ts";

const describe = (thrown: unknown) => describeError(thrown, { scrubText });

test("name, code, message and places", () => {
  const error = new BeamclawError("provider_auth", "refused, password: hunter2");
  expect(describe(error)).toMatchObject({
    name: "CodedError",
    code: "provider_auth",
    error: "refused, password: [REDACTED]",
  });
  expect(describe(error).stack).toMatch(/^at .*describe-error\.test\.ts/);
});

verifies(
  "W60",
  "what a parser quotes from its input does not show, nor does the message in the stack",
  () => {
    for (const text of ["hello dear diary", '{"a": "dear diary" oops', `[${'"dear diary",'.repeat(20)}x`]) {
      let thrown: unknown = null;
      try {
        JSON.parse(text);
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBeInstanceOf(SyntaxError);
      expect(JSON.stringify(describe(thrown))).not.toContain("diary");
    }
  },
);

test("anything can be thrown, of any length", () => {
  expect(describe("plain text").error).toBe("plain text");
  expect(describe(undefined).error).toBe("undefined");
  expect(describe(new Error("x".repeat(9_000))).error).toHaveLength(MAX_ERROR_MESSAGE);
});
