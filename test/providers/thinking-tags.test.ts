import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { stripThinking, ThinkingStripper } from "../../src/providers/thinking-tags.ts";

test.each([
  ["", ""],
  ["plain", "plain"],
  ["  leading blanks", "leading blanks"],
  ["a < b and c > d", "a < b and c > d"],
  ["<think>a</think>Hi<think>b</think>there", "Hithere"],
  ["<thinking>partial", "partial"],
  ["< thinking >r</ thinking >Answer", "Answer"],
  ["<think>a<think>b</think></think>Y", "</think>Y"],
  ["<THINK>a</Think>Hi", "Hi"],
  ["<antThinking>a</antthinking>Hi <thought>b</thought>you", "Hi you"],
  ["<think>a</think>\n\n  Hi", "Hi"],
  ["Hi <think>cut off", "Hi "],
  ["<think>only</think>", "only"],
  ["<think>one</think>\n<thought>two</thought>", "one\ntwo"],
  ["<final>The answer</final>", "The answer"],
  ["<think>a</think><final>b</final>", "b"],
  ["<think>a</thinking>b</think>c", "c"],
  ['<think class="x">a</think>b', '<think class="x">a</think>b'],
  ["<thin king>a", "<thin king>a"],
  ["Use `<think>` to think", "Use `<think>` to think"],
  ["```xml\n<think>a</think>\n```\n<think>b</think>c", "```xml\n<think>a</think>\n```\nc"],
  ["~~~\n<think>a</think>", "~~~\n<think>a</think>"],
  ["<think>```js\nx</think>Hi", "Hi"],
  ["`<final>` <final>x</final>", "`<final>` x"],
  ["ends with <thi", "ends with <thi"],
])("%j becomes %j", (text, wanted) => {
  expect(stripThinking(text)).toBe(wanted);
});

const parts = fc.constantFrom(
  ..."<think> </think> <thinking> </thinking> <thought> < think > </ think > <final> </final> <antThinking>".split(
    " ",
  ),
  ..."` ``` ~~~ < > / \n a think".split(" "),
  " ",
  "\n",
  "wörd 😀",
);
const texts = fc.array(parts, { maxLength: 25 }).map((all) => all.join(""));

describe("while the text arrives", () => {
  test("the pieces add up to the whole, whatever the chunking", () => {
    fc.assert(
      fc.property(texts, fc.array(fc.nat(6), { maxLength: 40 }), (text, sizes) => {
        const stripper = new ThinkingStripper();
        let out = "";
        let at = 0;
        for (const size of sizes) {
          out += stripper.push(text.slice(at, at + size));
          at += size;
        }
        out += stripper.push(text.slice(at)) + stripper.end();
        expect(out).toBe(stripThinking(text));
      }),
    );
  });

  test("text outside code is judged like a plain reading of the rules", () => {
    const plain = fc
      .array(
        parts.filter((part) => !/[`~]/.test(part)),
        { maxLength: 25 },
      )
      .map((all) => all.join(""));
    fc.assert(
      fc.property(plain, (text) => {
        expect(stripThinking(text)).toBe(byTheRules(text));
      }),
      { numRuns: 500 },
    );
  });

  test("what cannot be a tag is not held back", () => {
    const stripper = new ThinkingStripper();
    expect(stripper.push("Hello ")).toBe("Hello ");
    expect(stripper.push("a <")).toBe("a ");
    expect(stripper.push("b")).toBe("<b");
    expect(stripper.push(" <th")).toBe(" ");
    expect(stripper.push("ink>secret")).toBe("");
    expect(stripper.push("</think>!")).toBe("!");
  });
});

/** The rules for text without code, as a few replacements. */
function byTheRules(text: string): string {
  const open = String.raw`<\s{0,8}(think|thinking|thought|antthinking)\s{0,8}>`;
  const element = new RegExp(String.raw`${open}[\s\S]*?(?:<\s{0,8}/\s{0,8}\1\s{0,8}>|$)`, "gi");
  const final = /<\s{0,8}\/?\s{0,8}final\s{0,8}>/gi;
  const stripped = text
    .replaceAll(element, "\u{0}")
    .replaceAll(final, "")
    .replaceAll("\u{0}", "")
    .trimStart();
  const tags = /<\s{0,8}\/?\s{0,8}(?:think|thinking|thought|antthinking|final)\s{0,8}>/gi;
  return stripped === "" ? text.replaceAll(tags, "").trimStart() : stripped;
}
