import { expect, test } from "vitest";
import { z } from "zod";
import type { Autonomy, Effect } from "../../src/domain/autonomy.ts";
import { defineTool, succeeded } from "../../src/tools/define-tool.ts";
import { ToolRegistry } from "../../src/tools/registry.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { verifies } from "../support/verifies.ts";

const tool = (name: string, minAutonomy: Autonomy, leastEffect: Effect): Tool =>
  defineTool({
    name,
    description: name,
    input: z.strictObject({}),
    minAutonomy,
    leastEffect,
    effect: () => leastEffect,
    pattern: () => null,
    summary: () => "",
    run: async () => succeeded(name),
  });

const look = tool("look", "read_only", "none");
const change = tool("change", "supervised", "internal");
const send = tool("send", "full", "external");

const offered = (autonomy: Autonomy, effects: boolean): readonly string[] =>
  new ToolRegistry([look, change, send]).offered(autonomy, effects).map(({ name }) => name);

test("a model is shown what its agent's autonomy and the request allow, in one order", () => {
  expect(offered("full", true)).toEqual(["look", "change", "send"]);
  expect(offered("supervised", true)).toEqual(["look", "change"]);
  expect(offered("read_only", true)).toEqual(["look"]);
  expect(offered("full", false)).toEqual(["look"]);
});

verifies(["W66"], "a registry is complete from the start and cannot lose a tool", () => {
  const list = [look, change];
  const registry = new ToolRegistry(list);
  list.pop();
  expect(registry.all()).toEqual([look, change]);
  expect(registry.get("change")).toBe(change);
  expect(registry.offered("full", true)).toHaveLength(2);
});

test("contradictions are refused when it is built", () => {
  expect(() => new ToolRegistry([look, look])).toThrow("duplicate");
  expect(() => new ToolRegistry([tool("sly", "read_only", "external")])).toThrow("sly has effects");
});
