import { once } from "node:events";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { chunksOf, contentOf, type SseClient } from "../gateway/sse-client.ts";
import { DaemonWorld, readStream } from "../support/daemon-world.ts";
import { verifies } from "../support/verifies.ts";

/** Turns that are cut short from outside: cancelled, left by their client, out of time, too many. */
let world: DaemonWorld;
beforeAll(async () => {
  world = await DaemonWorld.open({
    config: { autonomy: "full", loop: { turnSeconds: 2 }, sessions: { queue: { perSession: 2 } } },
  });
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

async function firstWord(stream: SseClient): Promise<readonly string[]> {
  const seen: string[] = [];
  while (contentOf(chunksOf(seen).chunks) === "") seen.push((await stream.next()) ?? "data: [DONE]");
  return seen;
}

const cancel = (run: string): Promise<Response> =>
  world.daemon.request(`/v1/runs/${run}/cancel`, { method: "POST" });

verifies("W5", "cancelled while it streams: what was said is kept, the model's API is let go", async () => {
  const stream = await world.open("streaming", "!stall after=2");
  const upstream = world.model.requests.at(-1);
  const seen = await firstWord(stream);
  const run = stream.headers.get("x-run-id") ?? "";
  expect((await cancel(run)).status).toBe(200);
  const { chunks, done } = chunksOf([...seen, ...(await stream.all())]);
  expect(done).toBe(true);
  expect(contentOf(chunks)).toMatch(/^one.*\[cancelled\]$/s);
  expect(await upstream?.closed).toBe("aborted");
  expect(await world.get(`/v1/runs/${run}`)).toMatchObject({ state: "cancelled" });
  expect((await cancel(run)).status).toBe(409);
  expect(await world.say("streaming", "!say works on")).toMatchObject({ text: "works on" });
});

verifies(
  ["W5", "W27"],
  "cancelled while a command runs: the command is gone, the session works on",
  async () => {
    const asked = world.model.nextRequest();
    const answer = world.say("command", `${world.outside.appendAndStay("started")}\n!say never`);
    await asked;
    await world.outside.written("started");
    const [run] = await world.list("/v1/runs?session_id=command");
    expect((await cancel(String(run?.["id"]))).status).toBe(200);
    expect(await answer).toMatchObject({ status: 200, text: "[cancelled]" });
    await vi.waitFor(() => expect(world.outside.staying).toBe(false), { timeout: 10_000 });
    expect(await world.say("command", "!say works on")).toMatchObject({ text: "works on" });
    expect(world.outside.lines).toEqual(["started"]);
  },
);

test("a client that leaves ends a stateless run, and the model's API is let go", async () => {
  const stream = await world.open("none", "!stall after=2");
  const upstream = world.model.requests.at(-1);
  await firstWord(stream);
  const run = stream.headers.get("x-run-id") ?? "";
  await stream.close();
  expect(await upstream?.closed).toBe("aborted");
  await world.reached(run, "cancelled");
});

test("a client that leaves a conversation finds the answer in its history", async () => {
  const stream = await world.open("left", "!say gap=20 one two three four five six");
  await firstWord(stream);
  await stream.close();
  await world.reached(stream.headers.get("x-run-id") ?? "", "completed");
  expect((await world.history("left"))[1]).toBe("assistant: one two three four five six");
});

verifies("W5", "one deadline over the whole turn: streamed as an error frame, else as a status", async () => {
  const [streamed, whole] = await Promise.all([
    world.stream("deadline-streamed", "!stall after=2"),
    world.say("deadline-whole", "!stall after=2"),
  ]);
  expect(streamed).toMatchObject({ status: 200, error: "turn_timeout" });
  expect(whole).toMatchObject({ status: 504, error: "turn_timeout" });
  expect(await world.say("deadline-whole", "!say works on")).toMatchObject({ text: "works on" });
});

verifies(
  "W13",
  "messages that come together are answered one after the other; too many are refused",
  async () => {
    const session = "crowded";
    const first = await world.open(session, "!say gap=100 one two three four five six seven eight");
    await firstWord(first);
    const later = [1, 2].map((n) => world.post(session, `!say answer ${n}`, { body: { stream: true } }));
    await vi.waitFor(async () => {
      expect(await world.list(`/v1/runs?session_id=${session}&state=queued`)).toHaveLength(2);
    });
    const refused = await world.say(session, "!say too much");
    expect(refused).toMatchObject({ status: 429, error: "queue_full" });
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(chunksOf(await first.all()).done).toBe(true);
    const answers = await Promise.all(later.map(async (response) => (await readStream(await response)).text));
    expect(answers.toSorted((a, b) => a.localeCompare(b))).toEqual(["answer 1", "answer 2"]);
    const roles = (await world.history(session)).map((entry) => entry.split(":", 1)[0]);
    expect(roles).toEqual(["user", "assistant", "user", "assistant", "user", "assistant"]);
  },
);

test("the daemon stops with nothing left behind", async () => {
  const exit = once(world.daemon.child, "exit");
  world.daemon.child.kill("SIGTERM");
  expect(await exit).toEqual([0, null]);
});
