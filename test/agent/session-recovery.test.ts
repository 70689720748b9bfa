import { expect, test } from "vitest";
import { type MessageId, newId, type RunId } from "../../src/domain/ids.ts";
import type { Run } from "../../src/domain/run.ts";
import { callTools, say } from "../../src/providers/scripted-provider.ts";
import { agent, alice, endingOf, recordingTool, session, World } from "../support/agent-world.ts";

/** A message that was accepted at this time by a process that died before it did anything about it. */
async function acceptOnly(world: World, text: string, at: number): Promise<RunId> {
  const id = newId<RunId>(at);
  await world.store.runs.accept({
    run: {
      id,
      sessionId: session,
      principal: alice,
      agent,
      channel: "http",
      ephemeral: false,
      input: {
        messages: [{ role: "user", content: text }],
        system: [],
        options: {},
        clientTools: [],
        origin: { channel: "http", token: "owner", interactive: true, effects: true },
      },
    },
    idempotency: null,
    messageIds: [newId<MessageId>(at)],
    start: false,
    limits: { perSession: 32, total: 1000 },
    at,
  });
  return id;
}

/** A run that waits for an answer, in a world that has died. */
async function waitingWorld(): Promise<{ world: World; run: Run; askedAt: number }> {
  const world = await World.open({ tools: [recordingTool("touch", "external").tool] });
  world.provider.add(callTools({ id: "1", name: "touch", arguments: '{"text":"x"}' }));
  const waiting = await world.say("touch x");
  if (waiting.kind !== "waiting") throw new Error(waiting.kind);
  await world.crash();
  return { world, run: waiting.run, askedAt: waiting.approval.createdAt };
}

test("a message that came after the question withdraws it, although the process died in between", async () => {
  const { world, run, askedAt } = await waitingWorld();
  await using _ = world;
  const next = await acceptOnly(world, "never mind", askedAt + 1);
  await using again = await World.open({ store: world.store });
  again.provider.add(say("forgotten"));
  await again.sessions.recover();
  const live = again.sessions.live(next);
  if (live !== undefined) await endingOf(live);
  expect(await again.store.runs.get(run.id)).toMatchObject({ state: "cancelled" });
  expect(await again.store.runs.get(next)).toMatchObject({ state: "completed", output: "forgotten" });
});

test("a message that had waited before the question was asked goes on waiting", async () => {
  const { world, run, askedAt } = await waitingWorld();
  await using _ = world;
  const next = await acceptOnly(world, "and then this", askedAt - 1);
  await using again = await World.open({ store: world.store });
  await again.sessions.recover();
  expect(await again.store.runs.get(run.id)).toMatchObject({ state: "waiting" });
  expect(await again.store.runs.get(next)).toMatchObject({ state: "queued" });
});
