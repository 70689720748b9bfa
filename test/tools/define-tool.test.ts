import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool, succeeded } from "../../src/tools/define-tool.ts";
import { call, contextIn, prepare, refusal } from "./workbench.ts";

const greet = defineTool({
  name: "greet",
  description: "Greets.",
  input: z.strictObject({ name: z.string().min(1).describe("Whom"), times: z.int().optional() }),
  aliases: { who: "name" },
  minAutonomy: "supervised",
  leastEffect: "internal",
  effect: ({ times }) => (times === undefined ? "internal" : "external"),
  pattern: ({ name }) => name,
  summary: ({ name }) => name,
  run: async ({ name, times }) => succeeded(`${name} ${times ?? 1}`),
});

describe("what a model sees", () => {
  test("the parameters come from the schema", () => {
    expect(greet.definition).toEqual({
      name: "greet",
      description: "Greets.",
      parameters: {
        type: "object",
        properties: {
          name: { type: "string", minLength: 1, description: "Whom" },
          times: expect.objectContaining({ type: "integer" }),
        },
        required: ["name"],
        additionalProperties: false,
      },
    });
  });

  test.each([
    ["no object", "[1]", "not a JSON object"],
    ["half a text", '{"name": "a', "not a JSON object"],
    ["nothing", "", "`name` is missing (received: nothing)"],
    ["another key", '{"nam": "a"}', "`name` is missing (received: `nam`)"],
    ["a wrong type", '{"name": 7}', "`name`: "],
    [
      "an unknown key",
      '{"name": "a", "colour": 1}',
      "`colour` is not an argument; the arguments are `name`, `times`",
    ],
  ])("%s is answered with the field and the cure", (_, json, message) => {
    const text = refusal(greet, json);
    expect(text).toContain(message);
    expect(text).toMatch(/^greet was not run: .* call it again\.$/s);
  });

  test("the summary is one line of bounded length", () => {
    const { summary } = prepare(greet, { name: `a\nb\t${"c".repeat(1000)}` });
    expect(summary).toMatch(/^greet a b c+…$/);
    expect(summary.length).toBe(300);
  });
});

test("effect, pattern and result follow the arguments", async () => {
  expect(prepare(greet, { name: "a" })).toMatchObject({ effect: "internal", pattern: "a" });
  expect(prepare(greet, { name: "a", times: 2 })).toMatchObject({ effect: "external" });
  expect(await call(greet, { name: "a", times: 2 }, contextIn("/"))).toEqual({ ok: true, text: "a 2" });
});

test("an alias stands for the argument, never over it", () => {
  expect(prepare(greet, { who: "a" }).pattern).toBe("a");
  expect(refusal(greet, '{"who": "a", "name": "b"}')).toContain("`who` is not an argument");
});

test("no text whatever makes it throw, and its answers stay short", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (json) => {
      const prepared = greet.prepare(json);
      expect(prepared.kind === "prepared" || prepared.message.length < 2000).toBe(true);
    }),
    { numRuns: 200 },
  );
});
