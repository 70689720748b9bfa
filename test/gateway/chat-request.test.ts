import { describe, expect, test } from "vitest";
import { parseChatRequest } from "../../src/gateway/chat-request.ts";

const hi = { role: "user", content: "hi" };
const body = (more: object, messages: readonly unknown[] = [hi]) => ({ messages, ...more });
const image = (url: string) => ({
  role: "user",
  content: [
    { type: "text", text: "see" },
    { type: "image_url", image_url: { url, detail: "low" } },
  ],
});
const fn = (name: string) => ({ type: "function", function: { name } });

describe("what is accepted", () => {
  test("all roles, in OpenAI's newer and older forms", () => {
    const { messages } = parseChatRequest(
      body({}, [
        {
          role: "developer",
          content: [
            { type: "text", text: "be " },
            { type: "text", text: "kind" },
          ],
        },
        { role: "user", content: "hi", name: "bob" },
        {
          role: "assistant",
          content: null,
          refusal: null,
          tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "a", content: [{ type: "text", text: "42" }] },
        { role: "assistant", content: [{ type: "refusal", refusal: "no" }] },
        { role: "assistant", tool_calls: [] },
      ]),
    );
    expect(messages).toEqual([
      { role: "system", content: "be kind" },
      { role: "user", content: "hi", name: "bob" },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "a", content: "42" },
      { role: "assistant", content: "no" },
      { role: "assistant", content: null },
    ]);
  });

  test("images by http(s) and as data", () => {
    for (const url of ["https://example.org/a.png", "data:image/png;base64,iVBORw0KGgo="]) {
      expect(parseChatRequest(body({}, [image(url)])).messages[0]).toEqual(image(url));
    }
  });

  test("halves of surrogate pairs become U+FFFD; whole characters stay", () => {
    const parts = [{ type: "text", text: "cut \udf89" }];
    const { messages } = parseChatRequest(
      body({}, [
        { role: "user", content: "party 🎉 cut \ud83c" },
        { role: "assistant", content: "ok \ud83c" },
        { role: "user", content: parts },
      ]),
    );
    expect(messages).toEqual([
      { role: "user", content: "party 🎉 cut \ufffd" },
      { role: "assistant", content: "ok \ufffd" },
      { role: "user", content: [{ type: "text", text: "cut \ufffd" }] },
    ]);
  });

  test("null is the same as absent, everywhere", () => {
    const nulls = Object.fromEntries(
      ["model", "stream", "tools", "tool_choice", "stop", "n", "user", "metadata", "functions"].map((key) => [
        key,
        null,
      ]),
    );
    expect(parseChatRequest(body(nulls))).toEqual(parseChatRequest(body({})));
  });

  test("`__proto__` in free-form parts is data", () => {
    const parameters: unknown = JSON.parse('{"__proto__":{"polluted":true},"type":"object"}');
    parseChatRequest(body({ tools: [{ type: "function", function: { name: "f", parameters } }] }));
    expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
  });
});

describe("what is refused names its field", () => {
  test.each<[string, string, unknown]>([
    ["messages", "messages", {}],
    ["no messages", "messages", { messages: [] }],
    ["messages that are no list (W64)", "messages", { messages: "hi" }],
    ["an unknown role", "messages[0].role", body({}, [{ role: "function", name: "f", content: "x" }])],
    ["content of a wrong type", "messages[0].content", body({}, [{ role: "user", content: 5 }])],
    ["no content", "messages[0].content", body({}, [{ role: "user" }])],
    [
      "an unknown part",
      "messages[0].content[0].type",
      body({}, [{ role: "user", content: [{ type: "input_audio" }] }]),
    ],
    [
      "a part without its text",
      "messages[0].content[0].text",
      body({}, [{ role: "user", content: [{ type: "text" }] }]),
    ],
    [
      "a stored file of somebody",
      "messages[0].content[1].image_url.url",
      body({}, [image("attachment:abc")]),
    ],
    ["no base64", "messages[0].content[1].image_url.url", body({}, [image("data:image/png;base64,!!")])],
    ["an empty image", "messages[0].content[1].image_url.url", body({}, [image("data:image/png;base64,")])],
    ["a file URL", "messages[0].content[1].image_url.url", body({}, [image("file:///etc/passwd")])],
    ["n", "n", body({ n: 2 })],
    ["functions", "functions", body({ functions: [] })],
    ["function_call", "function_call", body({ function_call: "auto" })],
    ["temperature", "temperature", body({ temperature: 3 })],
    ["max_tokens", "max_tokens", body({ max_tokens: 0 })],
    ["stop", "stop", body({ stop: 5 })],
    ["a tool of another type", "tools[0].type", body({ tools: [{ type: "custom" }] })],
    ["a tool's name", "tools[1].function.name", body({ tools: [fn("f"), fn("bad name")] })],
    ["a tool twice", "tools[1].function.name", body({ tools: [fn("f"), fn("f")] })],
    [
      "a choice that is no tool",
      "tool_choice.function.name",
      body({ tools: [fn("f")], tool_choice: fn("g") }),
    ],
    ["stream_options", "stream_options.include_usage", body({ stream_options: { include_usage: "yes" } })],
  ])("%s", (_, param, request) => {
    expect(() => parseChatRequest(request)).toThrow(
      expect.objectContaining({ code: "invalid_request", param }),
    );
  });

  test.each([[], "text", 5, [hi]])("a body that is no object: %j", (request) => {
    expect(() => parseChatRequest(request)).toThrow(expect.objectContaining({ code: "invalid_json" }));
  });
});
