import { expect, test } from "vitest";
import { timers } from "../../src/agent/timers.ts";
import type { Approval } from "../../src/domain/approval.ts";
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
