import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, describe, expect, test, vi } from "vitest";
import type { ModelOutcome } from "../../src/agent/provider.ts";
import type { WireMessage } from "../../src/domain/message.ts";
import { modelBench } from "../support/model-bench.ts";
import { ask, modelRequest, tool, user } from "../support/model-request.ts";
import { openaiSchema } from "../support/openai-schema.ts";
import { verifies } from "../support/verifies.ts";

const { server, clock, openai } = await modelBench();

const toolTurn: readonly WireMessage[] = [
  user("list"),
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c1", type: "function", function: { name: "ls", arguments: "{}" } }],
  },
  { role: "tool", tool_call_id: "c1", content: "a.txt" },
];

describe("the request", () => {
  test("carries the conversation's bytes, system texts first, tools and options", async () => {
    const request = modelRequest(toolTurn, {
      system: ["stable", "volatile"],
      tools: [tool("ls")],
      options: {
        temperature: 0.5,
        topP: 0.9,
        maxTokens: 100,
        stop: ["END"],
        seed: 7,
        toolChoice: "auto",
        parallelToolCalls: false,
        responseFormat: { type: "json_object" },
      },
    });
    await ask(openai({ headers: { "X-Extra": "1" } }), request);
    const { body, headers, problem } = server.requests.at(-1) ?? {};
    expect(problem).toBeNull();
    expect(body).toEqual({
      model: "m",
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: "system", content: "stable\n\nvolatile" }, ...toolTurn],
      tools: [
        {
          type: "function",
          function: { name: "ls", description: "does ls", parameters: { type: "object", properties: {} } },
        },
      ],
      tool_choice: "auto",
      parallel_tool_calls: false,
      temperature: 0.5,
      top_p: 0.9,
      max_tokens: 100,
      stop: ["END"],
      response_format: { type: "json_object" },
      seed: 7,
    });
    expect(headers).toMatchObject({ authorization: "Bearer test-key", "x-extra": "1" });
    expect(headers?.["traceparent"]).toMatch(/^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01$/);
  });

  test("follows the dialect: separate system messages, the newer limit, the entry's bound", async () => {
    const provider = openai({
      systemMessages: "separate",
      maxTokensField: "max_completion_tokens",
      maxOutputTokens: 50,
      apiKey: null,
    });
    await ask(
      provider,
      modelRequest("hi", { system: ["a", "b"], options: { maxTokens: 100, toolChoice: "auto" } }),
    );
    const { body, headers } = server.requests.at(-1) ?? {};
    expect(body).toMatchObject({ max_completion_tokens: 50 });
    expect(body?.["messages"]).toEqual([
      { role: "system", content: "a" },
      { role: "system", content: "b" },
      { role: "user", content: "hi" },
    ]);
    expect(body).not.toHaveProperty("tool_choice"); // there is nothing to choose from
    expect(headers).not.toHaveProperty("authorization");
  });

  test("is as good without system texts", async () => {
    await ask(openai(), modelRequest("hi", { system: [] }));
    expect(server.requests.at(-1)?.body["messages"]).toEqual([{ role: "user", content: "hi" }]);
  });

  test("headers that cannot be sent are our fault, and said so", async () => {
    const { outcome } = await ask(openai({ headers: { "x-bad": "a\nb" } }), modelRequest("hi"));
    expect(outcome).toMatchObject({ failure: { code: "provider_rejected", retryable: false } });
  });

  const schema = openaiSchema();
  test.skipIf(schema === null)("is valid by OpenAI's own schema (needs BEAMCLAW_TEST_DATA)", async () => {
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } } as const;
    const conversation = [
      ...toolTurn,
      { role: "user", content: [{ type: "text", text: "and?" }, image] } as const,
    ];
    await ask(
      openai(),
      modelRequest(conversation, { tools: [tool("ls")], options: { maxTokens: 9, stop: ["x"] } }),
    );
    expect(schema?.validate("CreateChatCompletionRequest", server.requests.at(-1)?.body)).toEqual([]);
  });
});

describe("the answer", () => {
  test("reasoning comes as its own deltas, usage with its details", async () => {
    const { outcome, deltas, said } = await ask(
      openai(),
      modelRequest("!think let me see\n!say <think>no</think>Done"),
    );
    expect(said).toBe("Done");
    expect(
      deltas
        .filter(({ kind }) => kind === "reasoning")
        .map(({ text }) => text)
        .join(""),
    ).toBe("let me see");
    expect(outcome).toMatchObject({
      answer: { text: "Done", usage: { promptTokens: 11, cachedTokens: 4, reasoningTokens: 10 } },
    });
  });

  test("one JSON document is as good as a stream", async () => {
    const { outcome, said } = await ask(openai(), modelRequest("!json all at once"));
    expect(outcome).toMatchObject({
      kind: "answered",
      answer: { text: "all at once", usage: { promptTokens: 11 } },
    });
    expect(said).toBe("all at once");
  });

  test("a missing end marker does no harm once the reason to stop is known", async () => {
    const { outcome } = await ask(openai(), modelRequest("!nodone fine"));
    expect(outcome).toMatchObject({ kind: "answered", answer: { text: "fine" } });
  });

  verifies("W7", "calls and their results go back paired, and an orphan is refused upstream", async () => {
    const good = await ask(openai(), modelRequest(toolTurn, { tools: [tool("ls")] }));
    expect(good.outcome).toMatchObject({ kind: "answered", answer: { text: "The tools say: a.txt" } });
    const orphan = await ask(openai(), modelRequest(toolTurn.slice(2)));
    expect(orphan.outcome).toMatchObject({
      kind: "failed",
      failure: { code: "provider_rejected", retryable: false, started: false },
    });
  });

  test("an id that the conversation has already is replaced", async () => {
    const first = await ask(openai(), modelRequest("!call ls {}", { tools: [tool("ls")] }));
    const id = callId(first.outcome);
    const conversation: readonly WireMessage[] = [
      user("before"),
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id, type: "function", function: { name: "ls", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: id, content: "x" },
      user("!call ls {}"),
    ];
    const second = await ask(openai(), modelRequest(conversation, { tools: [tool("ls")] }));
    expect(callId(second.outcome)).not.toBe(id);
  });
});

const callId = (outcome: ModelOutcome): string =>
  outcome.kind === "answered" ? (outcome.answer.calls[0]?.id ?? "") : outcome.kind;

describe("deadlines and cancellation", () => {
  verifies(["W5"], "each phase has a deadline of its own", async () => {
    const before = ask(openai(), modelRequest("!stall"));
    await server.nextRequest();
    await clock.advance(59_000);
    await clock.advance(2_000);
    expect((await before).outcome).toMatchObject({
      failure: { code: "provider_timeout", message: "no answer from remote within 60 s", started: false },
    });
  });

  verifies("W5", "a cancelled call closes its connection", async () => {
    const controller = new AbortController();
    const arrived = server.nextRequest();
    const asked = ask(openai(), modelRequest("!stall after=2"), controller.signal);
    const request = await arrived;
    controller.abort();
    expect((await asked).outcome).toEqual({ kind: "cancelled" });
    expect(await request.closed).toBe("aborted");
  });

  test("a finished call leaves its connection to the next one and no timer behind", async () => {
    for (let count = 0; count < 12; count += 1) await ask(openai(), modelRequest("hi"));
    const ports = new Set(server.requests.slice(-12).map(({ port }) => port));
    expect(ports.size).toBeLessThan(6); // the end of one answer may still be on its way when the next call begins
    await vi.waitFor(() => expect(clock.pending).toBe(0), { interval: 1 });
  });

  test("nobody listens there", async () => {
    const { outcome } = await ask(openai({ baseUrl: "http://127.0.0.1:9" }), modelRequest("hi"));
    expect(outcome).toMatchObject({
      failure: { code: "provider_unavailable", retryable: true, started: false },
    });
  });
});

const choice = (delta: object, finish: string | null = null): object => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const failed = (code: string): object => ({ kind: "failed", failure: { code } });

/** Answers that no decent server gives, byte by byte. */
describe("raw answers", () => {
  const servers: Server[] = [];
  afterAll(() => {
    for (const raw of servers) raw.close();
  });

  async function answers(type: string, body: string, status = 200): Promise<ModelOutcome> {
    const raw = createServer((request, response) => {
      request.resume();
      response.writeHead(status, { "content-type": type, connection: "close" }).end(body);
    });
    servers.push(raw);
    raw.listen(0, "127.0.0.1");
    await once(raw, "listening");
    const baseUrl = `http://127.0.0.1:${(raw.address() as AddressInfo).port}`;
    return (await ask(openai({ baseUrl }), modelRequest("hi"))).outcome;
  }
  const stream = (...events: readonly unknown[]): Promise<ModelOutcome> =>
    answers("text/event-stream", events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));

  verifies("W63", "odd answers are classified, none is thrown", async () => {
    expect(await answers("application/json", "{oops")).toMatchObject(failed("provider_bad_answer"));
    expect(await answers("application/json", "[]")).toMatchObject(failed("provider_bad_answer"));
    expect(await answers("application/json", '{"choices":[]}')).toMatchObject(failed("provider_bad_answer"));
    expect(await answers("application/json", '{"error":{"code":429,"message":"slow"}}')).toMatchObject(
      failed("provider_rate_limited"),
    );
    expect(await answers("text/html", "<html>", 502)).toMatchObject(failed("provider_unavailable"));
    expect(await answers("text/plain", "moved", 301)).toMatchObject(failed("provider_bad_answer"));
    expect(await stream("text", 7, null)).toMatchObject(failed("provider_bad_answer"));
    expect(await stream({ choices: "none" })).toMatchObject(failed("provider_interrupted"));
    expect(await stream(choice({ content: "a" }), { error: { message: "x", code: 502 } })).toMatchObject({
      failure: { code: "provider_unavailable", started: true, partial: "a" },
    });
    expect(await stream(choice({ tool_calls: [{ index: 0 }] }, "tool_calls"))).toMatchObject(
      failed("provider_bad_answer"),
    );
  });

  test("an endless answer is cut off", async () => {
    const piece = choice({ content: "x".repeat(100_000) });
    expect(await stream(...Array.from({ length: 43 }, () => piece))).toMatchObject({
      failure: { code: "provider_bad_answer", retryable: false },
    });
  });

  test.each([
    [{ content: "a" }, "stop", { text: "a", finishReason: "stop" }],
    [{ content: "a" }, "length", { text: "a", finishReason: "length" }],
    [{ content: "a" }, "eos", { text: "a", finishReason: "stop" }],
    [{ refusal: "no" }, "stop", { text: "no" }],
    [
      {
        content: [
          { type: "thinking", thinking: [{ text: "h" }] },
          { type: "text", text: "a" },
        ],
      },
      "stop",
      { text: "a" },
    ],
    [{ tool_calls: [{ id: "x", function: { name: "ls" } }] }, "stop", { finishReason: "tool_calls" }],
    [{ content: "a" }, "tool_calls", { finishReason: "stop" }],
  ])("delta %j finishing with %s", async (delta, finish, wanted) => {
    expect(await stream(choice(delta, finish))).toMatchObject({ kind: "answered", answer: wanted });
  });
});
