import { expect, test } from "vitest";
import { modelBench } from "../support/model-bench.ts";
import { ask, modelRequest, user } from "../support/model-request.ts";
import { openaiSchema } from "../support/openai-schema.ts";

const { server, openai } = await modelBench();

async function post(path: string, body: unknown): Promise<string> {
  const response = await fetch(server.origin + path, { method: "POST", body: JSON.stringify(body) });
  return await response.text();
}

const chat = (content: string, rest: object = {}): Promise<string> =>
  post("/v1/chat/completions", { model: "m", messages: [user(content)], ...rest });

const schema = openaiSchema();

test.skipIf(schema === null)(
  "answers and chunks are valid by OpenAI's schema (needs BEAMCLAW_TEST_DATA)",
  async () => {
    const script = '!think hm\n!with let me see\n!call ls {"a":1}\n!call rm {}';
    for (const content of [script, "hello", "!nothing"]) {
      expect(schema?.validate("CreateChatCompletionResponse", JSON.parse(await chat(content)))).toEqual([]);
      const stream = await chat(content, { stream: true, stream_options: { include_usage: true } });
      const chunks = stream.split("\n\n").filter((line) => line.startsWith("data: {"));
      expect(chunks.length).toBeGreaterThan(1);
      for (const chunk of chunks) {
        expect(schema?.validate("CreateChatCompletionStreamResponse", JSON.parse(chunk.slice(6)))).toEqual(
          [],
        );
      }
      expect(stream.endsWith("data: [DONE]\n\n")).toBe(true);
    }
  },
);

test("steps follow the answers given, lines with `times` do not count as one", async () => {
  const asked = user("!say one\n!status code=500 times=1\n!say two");
  const later = [asked, { role: "assistant", content: "one" } as const];
  expect((await ask(openai(), modelRequest([asked]))).said).toBe("one");
  expect((await ask(openai(), modelRequest(later))).outcome.kind).toBe("failed");
  expect((await ask(openai(), modelRequest(later))).said).toBe("two");
});

test("scripts come by header, model name and ahead of time", async () => {
  const plain = modelRequest("hi");
  expect((await ask(openai({ headers: { "x-model-script": "!say by header" } }), plain)).said).toBe(
    "by header",
  );
  expect((await ask(openai({ model: "m!say by model" }), plain)).said).toBe("by model");
  server.enqueue("!say first\n!say second");
  expect((await ask(openai({ model: "m!say by model" }), plain)).said).toBe("first");
  expect((await ask(openai(), plain)).said).toBe("second");
  expect((await ask(openai(), plain)).said).toBe("You said: hi");
});
