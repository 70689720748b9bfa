import { writeFileSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DaemonWorld } from "../support/daemon-world.ts";
import {
  conversationUpstream,
  openaiClient,
  refusedUpstream,
  saying,
  SchemaJudge,
  sentUpstream,
} from "../support/openai-client.ts";

/** Tools that live in the client: the official tool runner, by hand, and beside tools of the server. */
const judge = new SchemaJudge();
let world: DaemonWorld;
beforeAll(async () => {
  world = await DaemonWorld.open();
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

/** A tool as the runner takes it, which notes the cities that it was asked for. */
const weatherTool = (asked: string[]) => ({
  type: "function" as const,
  function: {
    name: "weather",
    description: "Weather of a city.",
    parameters,
    parse: JSON.parse,
    function: ({ city }: { city: string }) => {
      asked.push(city);
      return `sunny in ${city}`;
    },
  },
});
/** The same as plain data. */
const WEATHER = {
  type: "function",
  function: { name: "weather", description: "Weather of a city.", parameters },
} as const;

const TWO_ROUNDS = [
  '!call weather {"city":"Oslo"}',
  '!call weather {"city":"Łódź"}',
  "!with And one more.",
  '!call weather {"city":"Lima"}',
  "!say sunny everywhere",
].join("\n");

const conversation = () => conversationUpstream(world);

/** The two kinds of conversation; the runner sends the whole conversation each time in both. */
const modes: readonly { readonly mode: string; readonly session: string | null }[] = [
  { mode: "stateless", session: null },
  { mode: "in a session", session: "runner" },
];
describe.each(modes)("$mode", ({ mode, session }) => {
  const named = (kind: string): OpenAI =>
    openaiClient(world, judge, session === null ? null : `${session}-${kind}`);

  test("the tool runner: parallel calls, a second round, the final answer", async () => {
    const asked: string[] = [];
    const runner = named("whole").chat.completions.runTools({
      ...saying(TWO_ROUNDS),
      tools: [weatherTool(asked)],
    });
    expect(await runner.finalContent()).toBe("sunny everywhere");
    expect(asked).toEqual(["Oslo", "Łódź", "Lima"]);
    expect(conversation().map(({ role, content }) => `${role}: ${String(content)}`)).toEqual([
      `user: ${TWO_ROUNDS}`,
      "assistant: null",
      "tool: sunny in Oslo",
      "tool: sunny in Łódź",
      "assistant: And one more.",
      "tool: sunny in Lima",
    ]);
  });

  test("the tool runner over streams", async () => {
    const asked: string[] = [];
    const runner = named("stream").chat.completions.runTools({
      ...saying(TWO_ROUNDS),
      stream: true,
      tools: [weatherTool(asked)],
    });
    const said: string[] = [];
    runner.on("content", (delta) => said.push(delta));
    expect(await runner.finalContent()).toBe("sunny everywhere");
    expect(asked).toEqual(["Oslo", "Łódź", "Lima"]);
    expect(said.join("")).toBe("And one more.sunny everywhere");
  });

  test("calls of both kinds in one answer: the server's run here, the client sees its own", async () => {
    writeFileSync(join(world.home, "agents", "default", "notes.txt"), "buy milk");
    const script = '!call read_file {"path":"notes.txt"}\n!call weather {"city":"Rome"}\n!say both known';
    const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [{ role: "user", content: script }];
    const client = named("both");
    const first = await client.chat.completions.create({ model: "beamclaw", messages, tools: [WEATHER] });
    expect(first.choices[0]?.finish_reason).toBe("tool_calls");
    const calls = first.choices[0]?.message.tool_calls ?? [];
    expect(calls.map((call) => call.type === "function" && call.function.name)).toEqual(["weather"]);
    messages.push(first.choices[0]?.message ?? { role: "assistant", content: "" });
    messages.push({ role: "tool", tool_call_id: calls[0]?.id ?? "", content: "rain in Rome" });
    const second = await client.chat.completions.create({ model: "beamclaw", messages, tools: [WEATHER] });
    expect(second.choices[0]?.message.content).toBe("both known");
    const results = conversation().filter(({ role }) => role === "tool");
    expect(results.map(({ content }) => content)).toEqual([
      expect.stringContaining("buy milk"),
      "rain in Rome",
    ]);
  });

  test("a client that goes on without its results: the model is told so", async () => {
    const client = named("goes-on");
    const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [
      { role: "user", content: '!call weather {"city":"Bonn"}' },
    ];
    const first = await client.chat.completions.create({ model: "beamclaw", messages, tools: [WEATHER] });
    messages.push(first.choices[0]?.message ?? { role: "assistant", content: "" });
    messages.push({ role: "user", content: "never mind" });
    const second = await client.chat.completions.create({ model: "beamclaw", messages, tools: [WEATHER] });
    expect(second.choices[0]?.message.content).toBe("You said: never mind");
    expect(conversation().map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user"]);
    expect(conversation()[2]?.content).toContain("not answered");
  });

  test(`a result that nobody asked for is refused by name (${mode})`, async () => {
    const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [
      { role: "user", content: "hello" },
      { role: "tool", tool_call_id: "call_nobody", content: "42" },
    ];
    const refused = named("refused").chat.completions.create({ model: "beamclaw", messages });
    await expect(refused).rejects.toMatchObject({ status: 400, param: "messages[1].tool_call_id" });
    await expect(refused).rejects.toBeInstanceOf(OpenAI.BadRequestError);
  });
});

test("tool_choice and parallel_tool_calls reach the model, and the client's tools beside the agent's", async () => {
  await openaiClient(world, judge, null).chat.completions.create({
    ...saying("hello"),
    tools: [WEATHER],
    tool_choice: { type: "function", function: { name: "weather" } },
    parallel_tool_calls: false,
  });
  const body = sentUpstream(world);
  expect(body).toMatchObject({
    tool_choice: { type: "function", function: { name: "weather" } },
    parallel_tool_calls: false,
  });
  expect(body["tools"]).toContainEqual(WEATHER);
  expect((body["tools"] as readonly unknown[]).length).toBeGreaterThan(1);
});

test("a client's tool hides the agent's of the same name, and its calls go to the client", async () => {
  const mine = {
    type: "function",
    function: { name: "terminal", description: "Mine.", parameters },
  } as const;
  const answer = await openaiClient(world, judge, "hidden").chat.completions.create({
    ...saying('!call terminal {"city":"Bern"}'),
    tools: [mine],
  });
  expect(answer.choices[0]?.finish_reason).toBe("tool_calls");
  expect(answer.choices[0]?.message.tool_calls).toMatchObject([{ function: { name: "terminal" } }]);
  const offered = sentUpstream(world)["tools"] as readonly { readonly function: { readonly name: string } }[];
  expect(offered.filter((tool) => tool.function.name === "terminal")).toEqual([mine]);
});

test("what was sent to the model's API was accepted by it", () => {
  expect(refusedUpstream(world)).toEqual([]);
});

test.skipIf(!judge.present)("every answer and chunk fits the published schema", async () => {
  const { judged, complaints } = await judge.verdict();
  expect(complaints).toEqual([]);
  expect(judged).toBeGreaterThan(25);
});
