import { expect, test } from "vitest";
import { newId, type RunId } from "../../src/domain/ids.ts";
import { traceIdOf } from "../../src/obs/trace.ts";

test("the trace id is the run's, as W3C wants it: 32 hex digits, not all zero", () => {
  const runId = newId<RunId>(1_700_000_000_000);
  expect(traceIdOf(runId)).toMatch(/^(?!0{32})[0-9a-f]{32}$/);
  expect(traceIdOf(runId)).toBe(traceIdOf(runId));
});
