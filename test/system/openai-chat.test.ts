import { readdirSync } from "node:fs";
import { join } from "node:path";
import type OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DaemonWorld } from "../support/daemon-world.ts";
import {
  all,
  conversationUpstream,
  openaiClient,
  refusedUpstream,
  saying,
  SchemaJudge,
  sentUpstream,
} from "../support/openai-client.ts";

/** Conversations of the official client: what it sends reaches the model, what it reads is complete. */
const judge = new SchemaJudge();
let world: DaemonWorld;
let client: OpenAI;
beforeAll(async () => {
  world = await DaemonWorld.open();
  client = openaiClient(world, judge, null);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

type Chunk = OpenAI.Chat.ChatCompletionChunk;

const textOf = (chunks: readonly Chunk[]): string =>
  chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");

const upstream = () => sentUpstream(world);
const conversation = () => conversationUpstream(world);

const USAGE = { prompt_tokens: 11, completion_tokens: 16, total_tokens: 27 };

test("a whole answer, with the ids of its run and session", async () => {
  const { data, response } = await client.chat.completions.create(saying("hello")).withResponse();
  expect(data).toMatchObject({
    object: "chat.completion",
    model: "beamclaw/default",
    choices: [
      { index: 0, finish_reason: "stop", message: { role: "assistant", content: "You said: hello" } },
    ],
    usage: USAGE,
  });
  expect(data.id).toBe(`chatcmpl-${response.headers.get("x-run-id")}`);
  expect(response.headers.get("x-session-id")).toBeTruthy();
  expect(response.headers.get("x-request-id")).toBeTruthy();
});

test("a stream: the role first, then text as it comes, the reason to stop last", async () => {
  const stream = await client.chat.completions.create({ ...saying("hello"), stream: true });
  const chunks = await all(stream);
  expect(chunks[0]?.choices[0]?.delta.role).toBe("assistant");
  expect(chunks.map((chunk) => chunk.choices[0]?.finish_reason).filter(Boolean)).toEqual(["stop"]);
  expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("stop");
  expect(textOf(chunks)).toBe("You said: hello");
  expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
  expect(chunks.every((chunk) => chunk.usage === undefined)).toBe(true);
});

test("include_usage adds one chunk without choices, and null before it", async () => {
  const stream = await client.chat.completions.create({
    ...saying("hello"),
    stream: true,
    stream_options: { include_usage: true },
  });
  const chunks = await all(stream);
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: USAGE });
  expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
});

test("the client's own stream reader puts the answer together", async () => {
  const stream = client.chat.completions.stream({
    ...saying("!think hm\n!say three little words"),
    stream_options: { include_usage: true },
  });
  const said: string[] = [];
  stream.on("content", (delta) => said.push(delta));
  const whole = await stream.finalChatCompletion();
  expect(whole.choices[0]?.message.content).toBe("three little words");
  expect(said.join("")).toBe("three little words");
  expect(whole.usage?.prompt_tokens).toBe(11);
});

test("models are agents, listed and by name", async () => {
  const listed = await all(client.models.list());
  expect(listed.map(({ id }) => id)).toEqual(["beamclaw", "beamclaw/default"]);
  expect(await client.models.retrieve("beamclaw/default")).toMatchObject({ id: "beamclaw/default" });
});

test("options reach the model under its own names", async () => {
  const schema = { type: "object", properties: { a: { type: "number" } }, additionalProperties: false };
  await client.chat.completions.create({
    ...saying("hello"),
    temperature: 0.25,
    top_p: 0.5,
    max_completion_tokens: 77,
    stop: ["END"],
    seed: 5,
    response_format: { type: "json_schema", json_schema: { name: "answer", schema, strict: true } },
    user: "somebody",
    metadata: { purpose: "test" },
  });
  expect(upstream()).toMatchObject({
    temperature: 0.25,
    top_p: 0.5,
    max_tokens: 77,
    stop: ["END"],
    seed: 5,
    response_format: { type: "json_schema", json_schema: { name: "answer", schema, strict: true } },
  });
});

test("a stateless request is its own whole conversation", async () => {
  const messages = [
    { role: "system", content: "Speak like a pirate." },
    { role: "user", content: "one" },
    { role: "assistant", content: "two" },
    { role: "user", content: "three" },
  ] as const;
  await client.chat.completions.create({ model: "beamclaw", messages: [...messages] });
  expect(conversation()).toEqual(messages.slice(1));
  expect(JSON.stringify(upstream()["messages"])).toContain("Speak like a pirate.");
});

test("a session remembers: the second request carries the first", async () => {
  const named = openaiClient(world, judge, "remembers");
  await named.chat.completions.create(saying("my name is Ada"));
  const second = await named.chat.completions.create({ ...saying("and who am I?"), stream: true });
  expect(textOf(await all(second))).toBe("You said: and who am I?");
  expect(conversation()).toEqual([
    { role: "user", content: "my name is Ada" },
    { role: "assistant", content: "You said: my name is Ada" },
    { role: "user", content: "and who am I?" },
  ]);
});

test("a session takes what is new when a client sends the whole conversation again", async () => {
  const named = openaiClient(world, judge, "whole");
  const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [{ role: "user", content: "first" }];
  const first = await named.chat.completions.create({ model: "beamclaw", messages });
  messages.push({ role: "assistant", content: first.choices[0]?.message.content ?? "" });
  messages.push({ role: "user", content: "second" });
  await named.chat.completions.create({ model: "beamclaw", messages });
  expect(conversation().map(({ content }) => content)).toEqual(["first", "You said: first", "second"]);
});

const SCRIPTS = "naïve 日本語 한국어 עברית 👩‍👩‍👧‍👦🇪🇺 e\u0301 𝒳 „quoted“ \\n";

test("text of every script survives, cut inside characters by the model's server", async () => {
  const named = openaiClient(world, judge, "unicode");
  const request = saying(`!cut ${SCRIPTS}`);
  const whole = await named.chat.completions.create(request);
  expect(whole.choices[0]?.message.content).toBe(SCRIPTS);
  expect(conversation().at(-1)?.content).toBe(`!cut ${SCRIPTS}`);
  const chunks = await all(await named.chat.completions.create({ ...request, stream: true }));
  expect(textOf(chunks)).toBe(SCRIPTS);
  expect(chunks.every((chunk) => (chunk.choices[0]?.delta.content ?? "").isWellFormed())).toBe(true);
  const session = await sessionOf(named);
  expect(await world.history(session)).toContain(`assistant: ${SCRIPTS}`);
});

/** The id behind a client's session name. */
async function sessionOf(named: OpenAI): Promise<string> {
  const { response } = await named.chat.completions.create(saying("who is there?")).withResponse();
  return response.headers.get("x-session-id") ?? "";
}

/** One pixel. */
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const IMAGE = {
  type: "image_url",
  image_url: { url: `data:image/png;base64,${PIXEL}`, detail: "low" },
} as const;
const LOOKING = [{ type: "text", text: "what is this?" }, IMAGE] as const;

test("an image reaches the model unchanged, in this turn and the next; history keeps it as a file", async () => {
  const named = openaiClient(world, judge, "image");
  const { data, response } = await named.chat.completions
    .create({ model: "beamclaw", messages: [{ role: "user", content: [...LOOKING] }] })
    .withResponse();
  expect(data.choices[0]?.message.content).toBe("You said: what is this?");
  expect(conversation()).toEqual([{ role: "user", content: LOOKING }]);
  await named.chat.completions.create(saying("and now?"));
  expect(conversation()[0]).toEqual({ role: "user", content: LOOKING });
  const messages = await world.list(`/v1/sessions/${response.headers.get("x-session-id")}/messages`);
  expect(JSON.stringify(messages)).not.toContain(PIXEL);
  expect(filesUnder("attachments")).toHaveLength(1);
});

test("an image in a stateless request reaches the model, and so does an image's address", async () => {
  const linked = { type: "image_url", image_url: { url: "https://example.org/cat.png" } } as const;
  const content = [...LOOKING, linked];
  await client.chat.completions.create({ model: "beamclaw", messages: [{ role: "user", content }] });
  expect(conversation()).toEqual([{ role: "user", content }]);
});

const filesUnder = (folder: string): readonly string[] =>
  readdirSync(join(world.home, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);

test("what was sent to the model's API was accepted by it", () => {
  expect(world.model.requests.length).toBeGreaterThan(10);
  expect(refusedUpstream(world)).toEqual([]);
});

test.skipIf(!judge.present)("every answer and chunk fits the published schema", async () => {
  const { judged, complaints } = await judge.verdict();
  expect(complaints).toEqual([]);
  expect(judged).toBeGreaterThan(25);
});
