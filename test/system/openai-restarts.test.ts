import { once } from "node:events";
import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DaemonWorld } from "../support/daemon-world.ts";
import { all, conversationUpstream, openaiClient, saying, SchemaJudge } from "../support/openai-client.ts";

/** What the official client finds after the daemon has stopped or died. */
const judge = new SchemaJudge();
let world: DaemonWorld;
beforeEach(async () => {
  world = await DaemonWorld.open();
});
afterEach(async () => {
  await world[Symbol.asyncDispose]();
});

/** A client of the daemon that runs now: each start has a port of its own. */
const ada = (): OpenAI => openaiClient(world, judge, "ada");

async function expectRemembered(): Promise<void> {
  const stream = await ada().chat.completions.create({ ...saying("who am I?"), stream: true });
  const text = (await all(stream)).map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
  expect(text).toBe("You said: who am I?");
  expect(conversationUpstream(world)).toEqual([
    { role: "user", content: "my name is Ada" },
    { role: "assistant", content: "You said: my name is Ada" },
    { role: "user", content: "who am I?" },
  ]);
}

describe("a session remembers", () => {
  test("after `beamclaw stop` and a start", async () => {
    await ada().chat.completions.create(saying("my name is Ada"));
    const exited = once(world.daemon.child, "exit");
    expect(await world.daemon.cli("stop")).toMatchObject({ code: 0 });
    expect(await exited).toEqual([0, null]);
    await world.start();
    await expectRemembered();
  });

  test("after SIGKILL", async () => {
    await ada().chat.completions.create(saying("my name is Ada"));
    await world.crash();
    await expectRemembered();
  });
});

test("an accepted message is answered after SIGKILL although its client is gone", async () => {
  const script = "!stall times=1\n!say better late than never";
  const upstream = world.model.nextRequest();
  const lost = ada()
    .chat.completions.create(saying(script), { headers: { "Idempotency-Key": "late" } })
    .then(
      () => null,
      (error: unknown) => error,
    );
  await upstream; // the model is asked, so the run is accepted
  await world.crash();
  expect(await lost).toBeInstanceOf(OpenAI.APIConnectionError);
  const again = await ada().chat.completions.create(saying(script), {
    headers: { "Idempotency-Key": "late" },
  });
  expect(again.choices[0]?.message.content).toBe("better late than never");
  const run = again.id.slice("chatcmpl-".length);
  const { session_id: session } = await world.reached(run, "completed");
  expect(await world.history(String(session))).toEqual([
    `user: ${script}`,
    "assistant: better late than never",
  ]);
});

test("a call of a client's tool is answered across a restart", async () => {
  const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [
    { role: "user", content: "!call weather {}\n!say it was sunny" },
  ];
  const request = {
    model: "beamclaw",
    messages,
    tools: [{ type: "function" as const, function: { name: "weather" } }],
  };
  const first = await ada().chat.completions.create(request);
  const message = first.choices[0]?.message;
  if (message === undefined) throw new Error("no choice");
  await world.crash();
  messages.push(message, {
    role: "tool",
    tool_call_id: message.tool_calls?.[0]?.id ?? "",
    content: "sunny",
  });
  const second = await ada().chat.completions.create(request);
  expect(second.choices[0]?.message.content).toBe("it was sunny");
});

test.skipIf(!judge.present)("every answer and chunk fits the published schema", async () => {
  expect((await judge.verdict()).complaints).toEqual([]);
});
