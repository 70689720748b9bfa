import { expect, test } from "vitest";
import { MAX_LABEL_VALUES } from "../../src/obs/instruments.ts";
import { Metrics } from "../../src/obs/metrics.ts";

test("updates before the load are not lost", async () => {
  const metrics = new Metrics();
  metrics.record((to) => to.approval("approve"));
  expect(await metrics.render()).toContain('beamclaw_approvals_total{decision="approve"} 1');
  metrics.record((to) => to.approval("approve"));
  expect(await metrics.render()).toContain('beamclaw_approvals_total{decision="approve"} 2');
});

test("updates that wait are bounded, and those beyond are counted", async () => {
  const metrics = new Metrics();
  for (let n = 0; n < 10_050; n += 1) metrics.record((to) => to.approval("deny"));
  const text = await metrics.render();
  expect(text).toContain('beamclaw_approvals_total{decision="deny"} 10000');
  expect(text).toContain("beamclaw_metric_updates_lost_total 50");
});

test("names that a model or a client makes up cannot multiply the series", async () => {
  const metrics = new Metrics();
  for (let n = 0; n < MAX_LABEL_VALUES + 50; n += 1) metrics.record((to) => to.toolCall(`tool${n}`, true, 1));
  const text = await metrics.render();
  expect(new Set(text.match(/tool="[^"]*"/g)).size).toBe(MAX_LABEL_VALUES + 1);
  expect(text).toContain('beamclaw_tool_call_seconds_count{tool="other",outcome="ok"} 50');
});

test("gauges are read at each rendering; one that cannot be read leaves the others alone", async () => {
  const metrics = new Metrics();
  let isUp = true;
  metrics.observe({
    runs: () => (isUp ? Promise.resolve({ queued: 3, running: 1 }) : Promise.reject(new Error("store away"))),
    oldestQueuedSeconds: () => (isUp ? Promise.resolve(7) : Promise.reject(new Error("store away"))),
  });
  const text = await metrics.render();
  expect(text).toContain('beamclaw_runs_open{state="queued"} 3');
  expect(text).toContain("beamclaw_queue_oldest_seconds 7");
  isUp = false;
  const later = await metrics.render();
  expect(later).not.toContain('state="queued"');
  expect(later).not.toMatch(/^beamclaw_queue_oldest_seconds /m);
  expect(later).toContain("beamclaw_resident_memory_bytes");
});

test("a run, its model calls and their tokens", async () => {
  const metrics = new Metrics();
  const call = { provider: "p", model: "m", duration_ms: 250, first_token_ms: 20, error: null };
  const usage = { promptTokens: 10, completionTokens: 5, cachedTokens: 4, reasoningTokens: 2 };
  metrics.record((to) => to.modelCall({ ...call, usage }));
  metrics.record((to) =>
    to.modelCall({ ...call, first_token_ms: null, error: "provider_timeout", usage: null }),
  );
  metrics.record((to) => to.runEnded("completed", 1_500));
  const text = await metrics.render();
  for (const [kind, count] of Object.entries({ prompt: 10, completion: 5, cached: 4, reasoning: 2 })) {
    expect(text).toContain(`beamclaw_tokens_total{provider="p",model="m",kind="${kind}"} ${count}`);
  }
  expect(text).toContain(
    'beamclaw_model_call_seconds_count{provider="p",model="m",outcome="provider_timeout"} 1',
  );
  expect(text).toContain('beamclaw_model_first_token_seconds_count{provider="p",model="m"} 1');
  expect(text).toContain('beamclaw_run_seconds_sum{state="completed"} 1.5');
});
