import { expect, test } from "vitest";
import { timers } from "../../src/agent/timers.ts";
import type { Approval } from "../../src/domain/approval.ts";
import { BeamclawError } from "../../src/domain/error-catalogue.ts";
import { callTools } from "../../src/providers/scripted-provider.ts";
import { recordingTool, World } from "../support/agent-world.ts";

test("a question that is asked while the timers sleep expires at its time, not at their next look", async () => {
  await using world = await World.open({
    tools: [recordingTool("touch", "external").tool],
    approvalSeconds: 5,
  });
  const stop = new AbortController();
  const expired: Approval[] = [];
  const serving = Promise.withResolvers<void>();
  const running = timers(
    world.services,
    async (approval) => void expired.push(approval),
  )({
    signal: stop.signal,
    ready: () => serving.resolve(),
  });
  await serving.promise;
  await world.clock.advance(1); // it has looked, found nothing, and sleeps
  world.provider.add(callTools({ id: "1", name: "touch", arguments: '{"text":"x"}' }));
  const waiting = await world.say("touch x");
  if (waiting.kind !== "waiting") throw new Error(waiting.kind);
  await world.clock.advance(waiting.approval.expiresAt - world.clock.now());
  stop.abort();
  await running;
  expect(expired.map(({ id }) => id)).toContain(waiting.approval.id);
});

test("a store that does not work is asked again later, and nobody crashes", async () => {
  await using world = await World.open();
  const trouble = new BeamclawError("store_unavailable", "the disk is full");
  let asked = 0;
  const runs = { ...world.store.runs, purge: () => Promise.reject(trouble) };
  const approvals = {
    ...world.store.approvals,
    due: async () => {
      asked += 1;
      return { due: [], nextAt: null };
    },
  };
  const store = { ...world.store, events: world.store.events, runs, approvals };
  const stop = new AbortController();
  const running = timers({ ...world.services, store }, () => Promise.resolve())({
    signal: stop.signal,
    ready: () => undefined,
  });
  await world.clock.advance(11_000);
  stop.abort();
  await running;
  expect(asked).toBe(3);
  expect(world.obs.names.filter((name) => name === "store_trouble")).toHaveLength(3);
});
