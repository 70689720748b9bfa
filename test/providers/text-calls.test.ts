import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fail, say, ScriptedProvider } from "../../src/providers/scripted-provider.ts";
import { TextCallProvider } from "../../src/providers/text-call-provider.ts";
import { TextCallScanner } from "../../src/providers/text-call-scanner.ts";
import { ask, modelRequest, tool } from "../support/model-request.ts";
import { verifies } from "../support/verifies.ts";

const tools = [tool("ls"), tool("rm")];
const declared = new Set(["ls", "rm"]);

/** The prose and the calls of a text, fed in the given pieces. */
function scan(...pieces: readonly string[]): { text: string; calls: string[] } {
  const scanner = new TextCallScanner(declared);
  const shown = pieces.map((piece) => scanner.push(piece)).join("");
  const { text, calls } = scanner.end(false);
  return { text: shown + text, calls: calls.map((call) => `${call.name} ${call.arguments}`) };
}

const xml = (name: string, args: string): string =>
  `<tool_call><name>${name}</name><args>${args}</args></tool_call>`;
const fence = (json: string): string => `\`\`\`json\n${json}\n\`\`\``;

describe("forms of calls", () => {
  test.each([
    [xml("ls", '{"a":1}'), ['ls {"a":1}']],
    ['<invoke>\n <name> ls </name>\n <args> {"a":1} </args>\n</invoke>', ['ls {"a":1}']],
    ["<toolcall><name>ls</name><args>plain words</args></toolcall>", ['ls {"raw":"plain words"}']],
    [xml("ls", "{}") + xml("rm", "{}"), ["ls {}", "rm {}"]],
    ['<tool_call>{"name": "ls", "arguments": {"a": 1}}</tool_call>', ['ls {"a":1}']],
    ['<tool_call><name>ls</name><args>{"a":1}', ['ls {"a":1}']],
    [fence('{"tool": "ls", "args": {"a": 1}}'), ['ls {"a":1}']],
    [fence('{"name": "ls", "args": {}}') + "\n" + fence('{"name": "rm", "args": {}}'), ["ls {}", "rm {}"]],
    [`${fence('{"name": "rm", "args": {}}')}\n${xml("ls", "{}")}`, ["ls {}"]],
  ])("%s", (text, calls) => {
    expect(scan(text).calls).toEqual(calls);
  });

  test("the words around a call stay, its marks go", () => {
    expect(scan(`I look.\n${xml("ls", "{}")}\n`)).toEqual({ text: "I look.\n", calls: ["ls {}"] });
    expect(scan(`Before ${xml("ls", "{}")} after`)).toEqual({ text: "Before  after", calls: ["ls {}"] });
  });
});

describe("text that is no call", () => {
  const texts = [
    xml("format_disk", "{}"),
    `\`${xml("ls", "{}")}\``,
    `\`\`\`\n${xml("ls", "{}")}\n\`\`\``,
    `\`\`\`xml\n${xml("ls", "{}")}\n\`\`\`\nSo it goes.`,
    `~~~\n${fence('{"name":"ls","args":{}}')}\n~~~`,
    `\`\`\`\`\n${fence('{"name":"ls","args":{}}')}\n\`\`\`\``,
    '{"name": "ls", "args": {}}',
    fence('{"name": "ls"}'),
    fence('{"name": "ls", "args": {}'),
    fence('{"name": "other", "args": {}}'),
    '```json5\n{"name":"ls","args":{}}\n```',
    '```\n{"name":"ls","args":{}}\n```',
    '```json\n{"name":"ls","args":{}}',
    'see ```json\n{"name":"ls","args":{}}\n```',
    "<tool_call><name>ls</name></tool_call>",
    '<tool_call id="1"><name>ls</name><args>{}</args></tool_call>',
    "<TOOL_CALL><name>ls</name><args>{}</args></TOOL_CALL>",
    "a < b, <b>bold</b> and `code",
    "ends with <tool_",
  ];
  verifies("W69", "code, undeclared tools and bare JSON are left as they are", () => {
    for (const text of texts) expect(scan(text)).toEqual({ text, calls: [] });
  });
});

test("the chunking makes no difference, and no text is lost", () => {
  const parts = fc.constantFrom(
    xml("ls", '{"a": "<b>"}'),
    fence('{"name":"rm","args":{}}'),
    ..."<tool_call> </tool_call> <invoke> <name>ls</name> <args>{}</args> ```json ``` ` ~~~ { } < word".split(
      " ",
    ),
    "\n",
    " ",
  );
  const texts = fc.array(parts, { maxLength: 14 }).map((all) => all.join(""));
  fc.assert(
    fc.property(texts, fc.array(fc.nat(9), { maxLength: 60 }), (text, sizes) => {
      const pieces: string[] = [];
      let at = 0;
      for (const size of sizes) {
        pieces.push(text.slice(at, at + size));
        at += size;
      }
      const cut = scan(...pieces, text.slice(at));
      expect(cut).toEqual(scan(text));
      if (cut.calls.length === 0) expect(cut.text).toBe(text);
    }),
    { numRuns: 300 },
  );
});

test("a mark that is never closed does not hold a long answer back for ever", () => {
  const scanner = new TextCallScanner(declared);
  expect(scanner.push("<tool_call>")).toBe("");
  expect(scanner.push("x".repeat(300_000))).toBe("");
  expect(scanner.push(">")).not.toBe("");
});

describe("TextCallProvider", () => {
  const withTools = modelRequest("go", { tools });

  test("makes calls of the text and shows only the rest", async () => {
    const inner = new ScriptedProvider([say("On it. ", "<tool_", `call>${xml("ls", "{}").slice(11)}`)]);
    const { outcome, said } = await ask(new TextCallProvider(inner), withTools);
    expect(said).toBe("On it. ");
    expect(outcome).toMatchObject({
      answer: { text: "On it. ", finishReason: "tool_calls", calls: [{ name: "ls", arguments: "{}" }] },
    });
  });

  test("native calls win, and then the text stays whole", async () => {
    const calls = [{ id: "n", name: "rm", arguments: "{}" }];
    const inner = new ScriptedProvider([{ deltas: ["a ", xml("ls", "{}"), " b"], calls }]);
    expect(await ask(new TextCallProvider(inner), withTools)).toMatchObject({
      said: `a ${xml("ls", "{}")} b`,
      outcome: { answer: { calls } },
    });
  });

  test("a failure keeps what was shown, and what was held with it", async () => {
    const shown = new ScriptedProvider([fail("provider_interrupted", { deltas: ["a ", "<tool_call>b"] })]);
    expect(await ask(new TextCallProvider(shown), withTools)).toMatchObject({
      said: "a <tool_call>b",
      outcome: { failure: { started: true, partial: "a <tool_call>b" } },
    });
    const held = new ScriptedProvider([fail("provider_interrupted", { deltas: ["<tool_call>b"] })]);
    expect(await ask(new TextCallProvider(held), withTools)).toMatchObject({
      said: "",
      outcome: { failure: { started: false, partial: "" } },
    });
  });

  test("without tools the text is none of its business", async () => {
    const inner = new ScriptedProvider([say(xml("ls", "{}"))]);
    expect(await ask(new TextCallProvider(inner), modelRequest("go"))).toMatchObject({
      said: xml("ls", "{}"),
    });
  });
});
