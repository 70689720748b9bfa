import { describe, expect, test } from "vitest";
import { businessEvents } from "../../src/obs/events.ts";
import { ProcessLog } from "../../src/obs/log.ts";
import { Metrics } from "../../src/obs/metrics.ts";
import { RecordingObs } from "../../src/obs/recording-obs.ts";
import { createScrubber } from "../../src/obs/scrubber.ts";
import { verifies } from "../support/verifies.ts";
import { eventNames, raiseAll, spoken } from "./support/every-event.ts";

function fail(): never {
  throw new Error("the disk is gone");
}

/** Names of the fields with which an event is recorded, over all its variants. */
function fieldsOf(obs: RecordingObs, event: string): readonly string[] {
  const names = obs.records
    .filter((record) => record.event === event)
    .flatMap(({ fields }) => Object.keys(fields));
  return [...new Set(names)].toSorted();
}

/** Everything that a log of the given level writes when every event has happened. */
function logged(level: "info" | "debug"): string {
  const lines: string[] = [];
  const log = new ProcessLog({
    level,
    scrubber: createScrubber(),
    sink: { write: (line) => lines.push(line), close: () => Promise.resolve() },
    now: () => 0,
  });
  raiseAll(businessEvents(log, new Metrics()));
  return lines.join("");
}

verifies("W65", "events carry the documented fields, those of a run its trace id", () => {
  const obs = new RecordingObs();
  raiseAll(obs.events);
  const run = ["run_id", "session_id", "trace_id"];
  const expected = {
    session_end: ["reason", "session_id"],
    session_restored: ["message_count", "session_id"],
    agent_start: [...run, "user_id"],
    llm_request: [...run, "message_count", "model", "provider"],
    llm_response: [...run, "duration_ms", "error", "first_token_ms", "model", "provider", "success", "usage"],
    tool_call_start: [...run, "call_id", "tool_name"],
    tool_call_result: [...run, "call_id", "duration_ms", "success", "tool_name"],
    turn_complete: [...run, "error", "outcome", "total_duration_ms"],
    compaction_complete: [...run, "after", "before"],
    approval_requested: [...run, "approval_id", "tool_name"],
    approval_resolved: [...run, "approval_id", "decision", "tool_name"],
    run_queued: run,
  };
  for (const [event, fields] of Object.entries(expected)) {
    expect([event, ...fieldsOf(obs, event)]).toEqual([event, ...fields.toSorted()]);
  }
});

verifies("W65", "failed model calls, refusals, crashes and store troubles are counted", async () => {
  const obs = new RecordingObs();
  raiseAll(obs.events);
  const metrics = await obs.metrics.render();
  expect(metrics).toContain('outcome="provider_timeout"');
  expect(metrics).toContain('beamclaw_refused_total{reason="queue_full"} 1');
  expect(metrics).toContain('beamclaw_child_exits_total{supervisor="root",child="http",reason="crashed"} 1');
  expect(metrics).toContain("beamclaw_store_troubles_total 1");
  expect(metrics).toContain('beamclaw_defects_total{where="gateway"} 1');
});

describe("the log of all events", () => {
  verifies("W60", "holds at level info nothing that a person, a model or a provider said", () => {
    const text = logged("info");
    expect(text).toContain('"event":"turn_complete"');
    expect(text).not.toContain(spoken);
  });

  test("holds the arguments of tools at level debug only, and names tokens instead of redacting them", () => {
    const text = logged("debug");
    expect(text.match(/"event":"tool_call_arguments"/g)).toHaveLength(2);
    expect(text).toContain(spoken);
    expect(text).toContain('"token_name":"laptop"');
  });

  test("keeps the places of a crash and not what its message quotes", () => {
    const text = logged("info");
    expect(text).toContain("at parse (src/a.ts:1:2)");
    expect(text).toContain("the text is not valid JSON");
  });
});

test("no event throws, whatever becomes of its log and its numbers", async () => {
  const log = new ProcessLog({
    level: "debug",
    scrubber: createScrubber(),
    sink: { write: fail, close: () => Promise.resolve() },
    now: () => 0,
  });
  log.follow(fail);
  const metrics = new Metrics();
  const events = businessEvents(log, metrics);
  raiseAll(events);
  const usage = { promptTokens: Number.NaN, completionTokens: -1 };
  const run = { session_id: "s", run_id: "r", trace_id: "t", provider: "p", model: "m" };
  const answer = { duration_ms: Number.NaN, first_token_ms: -1, success: true, error: null, usage };
  events.llmResponse({ ...run, ...answer });
  expect(await metrics.render()).toContain("beamclaw_metric_updates_lost_total 1");
  expect(eventNames.length).toBeGreaterThan(15);
});

test("times in the log are rounded to a tenth of a millisecond", () => {
  const lines: string[] = [];
  const log = new ProcessLog({
    level: "info",
    scrubber: createScrubber(),
    sink: { write: (line) => lines.push(line), close: () => Promise.resolve() },
    now: () => 0,
  });
  businessEvents(log, new Metrics()).lag({ p50: 1.234_567_890_123, p99: 20, max: 300.05 });
  expect(lines.join("")).toMatch(/"p50":1\.2,"p99":20,"max":300\.1/);
});
