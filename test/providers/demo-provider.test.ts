import { describe, expect, test } from "vitest";
import type { ModelAnswer } from "../../src/agent/provider.ts";
import type { WireMessage } from "../../src/domain/message.ts";
import { ManualClock } from "../../src/kernel/clock.ts";
import { DemoProvider } from "../../src/providers/demo-provider.ts";
import { ask, modelRequest, tool, user } from "../support/model-request.ts";

const clock = new ManualClock();
const demo = new DemoProvider({ name: "demo", wordMs: 0, contextWindow: 128_000 }, clock);
const names = "terminal bash read_file write_file delete_file jq web_search curl ask_human".split(" ");
const tools = names.map(tool);

async function answer(conversation: string | readonly WireMessage[], offered = tools): Promise<ModelAnswer> {
  const { outcome } = await ask(demo, modelRequest(conversation, { tools: offered }));
  if (outcome.kind !== "answered") throw new Error(outcome.kind);
  return outcome.answer;
}

const callsOf = async (message: string): Promise<unknown[]> =>
  (await answer(message)).calls.map((call) => [call.name, JSON.parse(call.arguments) as unknown]);

/** The conversation after the calls of `answered` got these results. */
function after(asked: string, answered: ModelAnswer, ...results: readonly string[]): readonly WireMessage[] {
  return [
    user(asked),
    {
      role: "assistant",
      content: answered.text,
      tool_calls: answered.calls.map(({ id, name, arguments: json }) => ({
        id,
        type: "function",
        function: { name, arguments: json },
      })),
    },
    ...results.map((content, index): WireMessage => ({
      role: "tool",
      tool_call_id: answered.calls[index]?.id ?? "",
      content,
    })),
  ];
}

describe("talk", () => {
  test("the first answer says what it is and how to get a real model", async () => {
    const { text } = await answer("hello");
    expect(text).toContain("offline demo");
    expect(text).toContain("OPENROUTER_API_KEY");
    const { text: later } = await answer([
      user("hello"),
      { role: "assistant", content: text },
      user("hello"),
    ]);
    expect(later).not.toContain("offline demo");
  });

  test("it remembers what the conversation holds", async () => {
    const told: readonly WireMessage[] = [
      user("My name is Ada and my city is Köln."),
      { role: "assistant", content: "Noted." },
      user("remember that the key is under the mat"),
      { role: "assistant", content: "Noted." },
    ];
    const reply = async (question: string): Promise<string> => (await answer([...told, user(question)])).text;
    expect(await reply("What is my name?")).toBe("Your name is Ada.");
    expect(await reply("what's my city?")).toBe("Your city is Köln.");
    expect(await reply("what is my age?")).toBe("You have not told me your age yet.");
    expect(await reply("what do you remember?")).toContain("the key is under the mat");
    expect(await reply("what did I say before?")).toContain("under the mat");
    expect(await reply("hi")).toContain("Hello, Ada!");
  });

  test("it is deterministic, and streams long answers word by word", async () => {
    const request = modelRequest([user("x"), { role: "assistant", content: "y" }, user("count to 200")]);
    const [one, two] = [await ask(demo, request), await ask(demo, request)];
    expect(one).toEqual(two);
    expect(one.deltas.length).toBe(200);
    expect(one.said.endsWith(" 200")).toBe(true);
  });

  test("it can speak at a pace", async () => {
    const slow = new DemoProvider({ name: "demo", wordMs: 100, contextWindow: 1 }, clock);
    let words = 0;
    const asked = slow.complete(modelRequest("count to 3"), () => (words += 1), new AbortController().signal);
    await clock.advance(250);
    expect(words).toBe(2);
    await clock.advance(60_000);
    expect((await asked).kind).toBe("answered");
  });
});

describe("tools", () => {
  test.each([
    ["run `ls -l`", [["terminal", { command: "ls -l" }]]],
    ["Please run date", [["terminal", { command: "date" }]]],
    ["read notes.txt.", [["read_file", { path: "notes.txt" }]]],
    ["Can you show me the file src/a.ts?", [["read_file", { path: "src/a.ts" }]]],
    ['write "a and read b" to c.txt', [["write_file", { path: "c.txt", content: "a and read b" }]]],
    ["delete the file notes.txt", [["delete_file", { path: "notes.txt" }]]],
    ["search the web for erlang otp", [["web_search", { query: "erlang otp" }]]],
    ['jq .a on {"a": 1}', [["jq", { filter: ".a", input: '{"a": 1}' }]]],
    ["fetch https://example.com/x", [["curl", { url: "https://example.com/x" }]]],
    ["bash `echo 1; echo 2`", [["bash", { script: "echo 1; echo 2" }]]],
    ['call ask_human with {"q": 1}', [["ask_human", { q: 1 }]]],
    [
      "run `ls` and read a.txt, delete b.txt",
      [
        ["terminal", { command: "ls" }],
        ["read_file", { path: "a.txt" }],
        ["delete_file", { path: "b.txt" }],
      ],
    ],
    ["I read books and write letters", []],
    ["what is the then operator", []],
  ])("%s", async (message, calls) => {
    expect(await callsOf(message)).toEqual(calls);
  });

  test("a tool that is not offered is not called", async () => {
    const { text, calls } = await answer("run `ls` and read a.txt", [tool("read_file")]);
    expect(calls.map(({ name }) => name)).toEqual(["read_file"]);
    expect(text).toContain("cannot use `terminal`");
  });

  test("results are summed up, and a plan goes on round by round", async () => {
    const asked = "write hi to a.txt, then read a.txt";
    const first = await answer(asked);
    const second = await answer(after(asked, first, "ok"));
    expect(second.calls.map(({ name }) => name)).toEqual(["read_file"]);
    expect(second.text).toContain("`write_file` says: ok");
    const both = [...after(asked, first, "ok"), ...after(asked, second, "hi").slice(1)];
    expect(await answer(both)).toMatchObject({
      calls: [],
      text: "`read_file` says: hi",
      finishReason: "stop",
    });
  });

  test("a denial ends the plan and asks what to do", async () => {
    const asked = "write hi to a.txt, then read a.txt";
    const { text, calls } = await answer(after(asked, await answer(asked), "Denied: the user said no."));
    expect(calls).toEqual([]);
    expect(text).toContain("You said no to `write_file`");
  });

  test("again and again never stops by itself", async () => {
    const asked = "run `date` again and again";
    const { calls } = await answer(after(asked, await answer(asked), "now"));
    expect(calls.map((call) => call.arguments)).toEqual(['{"command":"date"}']);
  });
});
