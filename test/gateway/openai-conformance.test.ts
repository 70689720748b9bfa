import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { openaiSchema } from "../support/openai-schema.ts";
import { chat, openGateway } from "./harness.ts";
import type { ScriptedRun } from "./scripted-conversations.ts";
import { chunksOf, framesOf } from "./sse-client.ts";

const schema = openaiSchema();
const clientCalls = [{ id: "call_1", name: "weather", arguments: '{"city":"Zürich"}' }];

const scripts: readonly [string, (run: ScriptedRun) => void][] = [
  ["an answer", (run) => run.answer("Grüezi 👋")],
  ["an empty answer", (run) => run.answer("")],
  ["client calls", (run) => run.answer("", { finishReason: "tool_calls", clientCalls })],
  ["a question", (run) => void run.ask({ pattern: "ls" })],
  ["an answer that was cut", (run) => run.answer("Half", { finishReason: "length" })],
  ["a cancelled run", (run) => run.begin(0).say("Half").cancel("user")],
];

const complaints = (name: string, value: unknown): readonly string[] => schema?.validate(name, value) ?? [];

describe.skipIf(schema === null)("by OpenAI's published description", () => {
  test.each(scripts)("%s is a valid completion, whole and in chunks", async (_, script) => {
    const gateway = await openGateway();
    gateway.conversations.script = script;
    const whole = await gateway.inject(chat("hi", { session_id: "a" }));
    expect(complaints("CreateChatCompletionResponse", whole.json())).toEqual([]);
    const body = { session_id: "b", stream: true, stream_options: { include_usage: true } };
    const { chunks } = chunksOf(framesOf((await gateway.inject(chat("hi", body))).body));
    for (const chunk of chunks) {
      expect(complaints("CreateChatCompletionStreamResponse", chunk)).toEqual([]);
    }
  });

  test("models and errors are valid", async () => {
    const gateway = await openGateway();
    const models = await gateway.inject({ url: "/v1/models" });
    expect(complaints("ListModelsResponse", models.json())).toEqual([]);
    const errors = [
      await gateway.inject(chat("hi", { n: 2 })),
      await gateway.inject({ url: "/v1/nothing" }),
      await gateway.inject({ url: "/v1/models", headers: { authorization: "" } }),
    ];
    for (const error of errors) expect(complaints("ErrorResponse", error.json())).toEqual([]);
  });
});

async function openClient(script: (run: ScriptedRun) => void) {
  const gateway = await openGateway();
  gateway.conversations.script = script;
  const client = new OpenAI({
    apiKey: gateway.owner,
    baseURL: `${await gateway.listen()}/v1`,
    maxRetries: 0,
  });
  return { gateway, client };
}

describe("the official client", () => {
  const messages = [{ role: "user" as const, content: "hi" }];

  test("reads answers, streams, models and errors", async () => {
    const { client } = await openClient((run) => run.answer("Grüezi 👋"));
    const whole = await client.chat.completions.create({ model: "beamclaw", messages });
    expect(whole.choices[0]?.message.content).toBe("Grüezi 👋");
    const stream = client.chat.completions.stream({ model: "beamclaw", messages });
    expect(await stream.finalContent()).toBe("Grüezi 👋");
    const models = await client.models.list();
    expect(models.data.map(({ id }) => id)).toContain("beamclaw/coder");
    expect((await client.models.retrieve("beamclaw/coder")).id).toBe("beamclaw/coder");
    await expect(client.chat.completions.create({ model: "beamclaw/nobody", messages })).rejects.toThrow(
      expect.objectContaining({ status: 404, code: "agent_not_found", param: "model" }),
    );
  });

  test("assembles tool calls from the stream and runs its own tools", async () => {
    const { client, gateway } = await openClient((run) => {
      const answered = run.saved.input.messages.some(({ role }) => role === "tool");
      if (answered) run.answer("It rains.");
      else run.answer("", { finishReason: "tool_calls", clientCalls });
    });
    const cities: string[] = [];
    const runner = client.chat.completions.runTools({
      model: "beamclaw",
      stream: true,
      messages,
      tools: [
        {
          type: "function",
          function: {
            name: "weather",
            description: "Weather of a city",
            parameters: { type: "object", properties: { city: { type: "string" } } },
            parse: JSON.parse,
            function: ({ city }: { city: string }) => {
              cities.push(city);
              return "rain";
            },
          },
        },
      ],
    });
    expect(await runner.finalContent()).toBe("It rains.");
    expect(cities).toEqual(["Zürich"]);
    expect(gateway.conversations.submissions[1]?.input.messages.at(-1)).toEqual({
      role: "tool",
      tool_call_id: "call_1",
      content: "rain",
    });
  });

  test("hears of a failure in the middle of a stream", async () => {
    const { client } = await openClient((run) => {
      queueMicrotask(() => {
        run.begin(0).say("Half");
        setImmediate(() => run.fail({ code: "provider_interrupted", message: "broke off" }));
      });
    });
    const stream = await client.chat.completions.create({ model: "beamclaw", messages, stream: true });
    const read = async () => {
      for await (const chunk of stream) expect(chunk.object).toBe("chat.completion.chunk");
    };
    await expect(read()).rejects.toThrow(/broke off/);
  });
});
