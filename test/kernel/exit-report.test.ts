import { expect, test } from "vitest";
import { CodedError } from "../../src/kernel/errors.ts";
import { summarize } from "../../src/kernel/exit-report.ts";

test("keeps name, code, message and stack, and nothing else of what the error carries", () => {
  const error = Object.assign(new CodedError("disk_full", "no space", { cause: { prompt: "private" } }), {
    request: { body: "private" },
  });
  const summary = summarize(error);
  expect(summary).toEqual({
    name: "CodedError",
    code: "disk_full",
    message: "no space",
    stack: expect.stringContaining("exit-report.test"),
  });
  expect(JSON.stringify(summary)).not.toContain("private");
});

test("whatever was thrown becomes a summary within bounds", () => {
  const long = summarize(new Error("x".repeat(100_000)));
  expect(long.message).toHaveLength(1_000);
  expect(long.stack?.length).toBeLessThanOrEqual(8_000);
  expect(summarize("just text")).toMatchObject({ name: "Error", message: "just text" });
  expect(summarize(Object.assign(new Error("old"), { code: 7 }))).not.toHaveProperty("code");
});
