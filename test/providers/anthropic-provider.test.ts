import { describe, expect, test } from "vitest";
import type { ModelRequest } from "../../src/agent/provider.ts";
import type { WireMessage } from "../../src/domain/message.ts";
import { AnthropicAnswer } from "../../src/providers/anthropic-answer.ts";
import { Deltas } from "../../src/providers/deltas.ts";
import { modelBench } from "../support/model-bench.ts";
import { ask, modelRequest, tool, user } from "../support/model-request.ts";
import { verifies } from "../support/verifies.ts";

const { server, anthropic } = await modelBench();

const call = (id: string, name: string, args: string) =>
  ({ id, type: "function", function: { name, arguments: args } }) as const;

const image = (url: string) => ({ type: "image_url", image_url: { url } }) as const;

const wire = (message: WireMessage, extra: string | null = null) => ({
  wire: JSON.stringify(message),
  extra,
});

async function sent(request: ModelRequest, options = {}): Promise<Record<string, unknown>> {
  await ask(anthropic(options), request);
  const { body, problem } = server.requests.at(-1) ?? {};
  expect(problem).toBeNull();
  return body ?? {};
}

describe("the request", () => {
  verifies(
    "W7",
    "calls and results become blocks, turns of one role are merged, results come first",
    async () => {
      const conversation: readonly WireMessage[] = [
        user("first"),
        user("second"),
        {
          role: "assistant",
          content: "I look.",
          tool_calls: [call("a:1", "ls", '{"path":"."}'), call("b", "rm", "oops")],
        },
        { role: "tool", tool_call_id: "a:1", content: "x.txt" },
        { role: "tool", tool_call_id: "b", content: "" },
        user("and now?"),
      ];
      const body = await sent(modelRequest(conversation, { tools: [tool("ls")] }));
      expect(body["messages"]).toEqual([
        {
          role: "user",
          content: [
            { type: "text", text: "first" },
            { type: "text", text: "second" },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "text", text: "I look." },
            { type: "tool_use", id: "a_1", name: "ls", input: { path: "." } },
            { type: "tool_use", id: "b", name: "rm", input: { raw: "oops" } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "a_1", content: [{ type: "text", text: "x.txt" }] },
            { type: "tool_result", tool_use_id: "b", content: [] },
            { type: "text", text: "and now?", cache_control: { type: "ephemeral" } },
          ],
        },
      ]);
    },
  );

  test("cache markers stand at the end of the prefix that comes again", async () => {
    const body = await sent(modelRequest("hi", { system: ["a", " ", "b"], tools: [tool("ls"), tool("rm")] }));
    const cached = { cache_control: { type: "ephemeral" } };
    expect(body["system"]).toEqual([
      { type: "text", text: "a" },
      { type: "text", text: "b", ...cached },
    ]);
    expect(body["tools"]).toMatchObject([{ name: "ls" }, { name: "rm", ...cached }]);
    expect((body["tools"] as object[])[0]).not.toHaveProperty("cache_control");
  });

  test("images as base64 and as address; what is neither is said in words", async () => {
    const content = [
      image("data:image/png;base64,AAAA"),
      image("https://x.example/a.png"),
      image("attachment:1"),
    ];
    const body = await sent(modelRequest([{ role: "user", content }]));
    expect(body["messages"]).toMatchObject([
      {
        content: [
          { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
          { type: "image", source: { type: "url", url: "https://x.example/a.png" } },
          { type: "text", text: "[image not available]" },
        ],
      },
    ]);
  });

  test("the conversation begins with a user and has no empty turn", async () => {
    const body = await sent(modelRequest([{ role: "assistant", content: "Welcome" }, user(" ")]));
    expect(body["messages"]).toMatchObject([
      { role: "user", content: [{ text: "(no text)" }] },
      { role: "assistant" },
      { role: "user", content: [{ text: "(no text)" }] },
    ]);
  });

  test.each([
    [{ toolChoice: "auto" }, { tool_choice: { type: "auto" } }],
    [{ toolChoice: "none" }, { tool_choice: { type: "none" } }],
    [{ toolChoice: "required" }, { tool_choice: { type: "any" } }],
    [
      { toolChoice: { type: "function", function: { name: "ls" } } },
      { tool_choice: { type: "tool", name: "ls" } },
    ],
    [{ parallelToolCalls: false }, { tool_choice: { type: "auto", disable_parallel_tool_use: true } }],
    [
      { maxTokens: 5, temperature: 1.5, topP: 0.5, stop: ["x", " "] },
      { max_tokens: 5, temperature: 1, stop_sequences: ["x"] },
    ],
    [{ topP: 0.5 }, { max_tokens: 8192, top_p: 0.5 }],
  ])("options %j", async (options, wanted) => {
    expect(await sent(modelRequest("hi", { options, tools: [tool("ls")] }))).toMatchObject(wanted);
  });

  test("headers, and the entry's bound on the answer", async () => {
    const body = await sent(modelRequest("hi"), { maxOutputTokens: 64_000, baseUrl: `${server.origin}/v1/` });
    expect(body).toMatchObject({ max_tokens: 64_000, stream: true, model: "m" });
    const { headers } = server.requests.at(-1) ?? {};
    expect(headers).toMatchObject({ "x-api-key": "test-key", "anthropic-version": "2023-06-01" });
  });
});

describe("the answer", () => {
  test("signed thinking is kept and goes back unchanged before the calls", async () => {
    const asked = '!think let me see\n!call ls {"a": 1}';
    const { outcome, deltas } = await ask(anthropic(), modelRequest(asked, { tools: [tool("ls")] }));
    if (outcome.kind !== "answered") throw new Error(outcome.kind);
    const { calls, extra } = outcome.answer;
    const thought = deltas.map(({ kind, text }) => (kind === "reasoning" ? text : "")).join("");
    expect(thought).toBe("let me see");
    const assistant: WireMessage = {
      role: "assistant",
      content: null,
      tool_calls: calls.map(({ id, name, arguments: json }) => call(id, name, json)),
    };
    const messages = [
      wire(user(asked)),
      wire(assistant, JSON.stringify(extra)),
      wire({ role: "tool", tool_call_id: calls[0]?.id ?? "", content: "done" }),
    ];
    const body = await sent({ ...modelRequest(asked, { tools: [tool("ls")] }), messages });
    expect(body["messages"]).toMatchObject([
      {},
      { content: [{ type: "thinking", thinking: "let me see", signature: "sig-10" }, { type: "tool_use" }] },
      {},
    ]);
    const foreign = [
      wire(user("hi")),
      wire({ role: "assistant", content: "a" }, '{"kind":"other","thinking":[{}]}'),
      wire(user("b")),
    ];
    const other = await sent({ ...modelRequest("hi"), messages: foreign });
    expect(other["messages"]).toMatchObject([{}, { content: [{ type: "text" }] }, {}]);
  });

  test("usage adds up what the API counts apart", async () => {
    const { outcome } = await ask(anthropic(), modelRequest("!say hi"));
    expect(outcome).toMatchObject({
      answer: { usage: { promptTokens: 13, cachedTokens: 4, completionTokens: 3 }, finishReason: "stop" },
    });
  });

  verifies("W63", "an overloaded API is unavailable, in the status and inside the stream", async () => {
    const status = await ask(anthropic(), modelRequest("!status code=529"));
    expect(status.outcome).toMatchObject({ failure: { code: "provider_unavailable", retryable: true } });
    const event = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    expect(play([{ type: "message_start" }, event])).toMatchObject({
      code: "provider_unavailable",
      retryable: true,
    });
  });

  test.each([
    ["end_turn", "stop"],
    ["stop_sequence", "stop"],
    ["max_tokens", "length"],
    ["refusal", "content_filter"],
    ["tool_use", "stop"],
  ])("stop reason %s without calls is %s", (reason, wanted) => {
    const events = [{ type: "message_delta", delta: { stop_reason: reason } }, { type: "message_stop" }];
    expect(play(events)).toMatchObject({ finishReason: wanted });
  });

  test("unknown events and deltas are passed over", () => {
    const events = [
      { type: "novelty" },
      { type: "content_block_start", index: 0, content_block: { type: "server_tool" } },
      { type: "content_block_delta", index: 0, delta: { type: "citations_delta" } },
      { type: "content_block_delta", index: 9, delta: { type: "text_delta", text: "lost" } },
      { type: "message_delta", delta: { stop_reason: "end_turn" } },
    ];
    expect(play(events)).toMatchObject({ text: "", calls: [] });
  });
});

/** What the reader makes of a stream of events. */
function play(events: readonly object[]): unknown {
  const reader = new AnthropicAnswer(
    "remote",
    modelRequest("hi"),
    new Deltas(() => undefined),
    (text) => text,
  );
  for (const event of events) {
    const progress = reader.event({ type: "", data: JSON.stringify(event) });
    if (typeof progress === "object") return progress;
  }
  return reader.finish();
}
