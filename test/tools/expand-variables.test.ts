import * as fc from "fast-check";
import { expect, test } from "vitest";
import { expandVariables, hideVariables } from "../../src/tools/expand-variables.ts";
import { verifies } from "../support/verifies.ts";

const values = new Map([
  ["TOKEN", "s3cret-value"],
  ["NEST", "$TOKEN"],
  ["MONEY", "$& $1 $$"],
]);

test.each([
  ["a $TOKEN b", "a s3cret-value b"],
  ["${TOKEN}x", "s3cret-valuex"],
  ["$TOKENx ${TOKENx} $ ${} $1 $$", "$TOKENx ${TOKENx} $ ${} $1 $$"],
  ["$HOME/${PATH}", "$HOME/${PATH}"],
  ["$NEST", "$TOKEN"],
  ["${MONEY}", "$& $1 $$"],
  ["$$TOKEN", "$s3cret-value"],
  ["${TOKEN", "${TOKEN"],
])("%s becomes %s", (text, expanded) => {
  expect(expandVariables(text, values)).toBe(expanded);
});

verifies(["W26"], "nothing of the environment is expanded but what was handed in", () => {
  fc.assert(
    fc.property(fc.string(), fc.constantFrom(...Object.keys(process.env)), (text, name) => {
      const wanted = `${text}$${name} \${${name}}`;
      expect(expandVariables(wanted, new Map())).toBe(wanted);
    }),
  );
});

test("text without a reference stays as it is", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const plain = text.replaceAll("$", "");
      expect(expandVariables(plain, values)).toBe(plain);
    }),
  );
});

verifies(
  ["W26"],
  "a value that comes back is shown as its name; longer ones first, short ones left alone",
  () => {
    const known = new Map([
      ["PART", "s3cret"],
      ["TOKEN", "s3cret-value"],
      ["TINY", "a"],
    ]);
    expect(hideVariables("a s3cret-value and s3cret", known)).toBe("a $TOKEN and $PART");
  },
);
