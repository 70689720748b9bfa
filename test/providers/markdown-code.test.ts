import * as fc from "fast-check";
import { expect, test } from "vitest";
import { MarkdownCode } from "../../src/providers/markdown-code.ts";

/** The text with `x` where it is code and `.` where it is not, as seen just before each character. */
function map(text: string): string {
  const code = new MarkdownCode();
  return Array.from(text)
    .map((char) => {
      const mark = char === "`" || char === "~" || char === "\n" ? char : code.inside ? "x" : ".";
      code.advance(char);
      return mark;
    })
    .join("");
}

test.each([
  ["a `b` c", "..`x`.."],
  ["a ``b`c`` d", "..``x`x``.."],
  ["open `x to the end\nnext", ".....`xxxxxxxxxxxx\n...."],
  ["```js\nx\n```\ny", "```xx\nx\n```\n."],
  ["~~~\nx\n~~~~\ny", "~~~\nx\n~~~~\n."],
  ["````\n```\nx\n````\ny", "````\n```\nx\n````\n."],
  ["```\n~~~\nx", "```\n~~~\nx"],
  ["```\nx\n``` no\nx", "```\nx\n```xxx\nx"],
  ["    ```\ny", "....```\n."],
  ["   ```\nx", "...```\nx"],
  ["```in`x```line``` y\nz", "```xx`x```....```xx\n."],
  ["```whole``` y\nz", "```xxxxx```..\n."],
  ["a ~~~ b\nc", "..~~~..\n."],
])("code in %j", (text, wanted) => {
  expect(map(text)).toBe(wanted);
});

test("the chunking makes no difference", () => {
  const texts = fc.array(fc.constantFrom("`", "``", "```", "~~~", "\n", " ", "x", "json", "   "), {
    maxLength: 30,
  });
  fc.assert(
    fc.property(texts, (parts) => {
      const whole = new MarkdownCode();
      whole.advance(parts.join(""));
      const pieces = new MarkdownCode();
      for (const part of parts) pieces.advance(part);
      expect([pieces.inside, pieces.mayOpenFence]).toEqual([whole.inside, whole.mayOpenFence]);
    }),
  );
});
