import { describe, expect, test } from "vitest";
import { finishCalls, ToolCallAssembler } from "../../src/providers/tool-call-assembler.ts";
import { modelRequest, tool } from "../support/model-request.ts";

function assemble(...deltas: readonly (readonly object[])[]): unknown[] {
  const assembler = new ToolCallAssembler();
  for (const delta of deltas) expect(assembler.add(delta)).toBe(true);
  return assembler.finish().map(({ id, name, arguments: json }) => [id, name, json]);
}

const call = (index: number | undefined, id: string | undefined, name?: string, args?: unknown): object => ({
  index,
  id,
  function: { name, arguments: args },
});

describe("deltas of tool calls", () => {
  test("as OpenAI sends them", () => {
    expect(
      assemble(
        [call(0, "a", "ls", "")],
        [call(0, undefined, undefined, '{"x"')],
        [call(0, undefined, undefined, ":1}")],
        [call(1, "b", "rm", "{}")],
      ),
    ).toEqual([
      ["a", "ls", '{"x":1}'],
      ["b", "rm", "{}"],
    ]);
  });

  test("several in one delta, interleaved", () => {
    expect(
      assemble(
        [call(0, "a", "ls", "{"), call(1, "b", "rm", "{")],
        [call(1, undefined, undefined, "1}"), call(0, undefined, undefined, "0}")],
      ),
    ).toEqual([
      ["a", "ls", "{0}"],
      ["b", "rm", "{1}"],
    ]);
  });

  test("without index: by id, or the last", () => {
    expect(
      assemble(
        [call(undefined, "a", "ls", "{")],
        [call(undefined, "b", "rm", "{")],
        [call(undefined, "a", undefined, "}")],
        [call(undefined, undefined, undefined, "}")],
      ),
    ).toEqual([
      ["a", "ls", "{}"],
      ["b", "rm", "{}"],
    ]);
  });

  test("without index and id: a new name is a new call", () => {
    expect(
      assemble([call(undefined, undefined, "ls", "{}")], [call(undefined, undefined, "rm", "{}")]),
    ).toEqual([
      [undefined, "ls", "{}"],
      [undefined, "rm", "{}"],
    ]);
  });

  test("every call under index 0 with an id of its own", () => {
    expect(assemble([call(0, "a", "ls", "{}")], [call(0, "b", "ls", "{}")])).toEqual([
      ["a", "ls", "{}"],
      ["b", "ls", "{}"],
    ]);
  });

  test("id and name repeated in every delta, or the name in pieces", () => {
    expect(assemble([call(0, "a", "ls", "{")], [call(0, "a", "ls", "}")])).toEqual([["a", "ls", "{}"]]);
    expect(assemble([call(0, "a", "read_", "")], [call(0, undefined, "file", "{}")])).toEqual([
      ["a", "read_file", "{}"],
    ]);
  });

  test("arguments as an object, null or absent", () => {
    expect(
      assemble([call(0, "a", "ls", { x: 1 })], [call(1, "b", "rm", null)], [call(2, "c", "cp")]),
    ).toEqual([
      ["a", "ls", '{"x":1}'],
      ["b", "rm", ""],
      ["c", "cp", ""],
    ]);
  });

  test("too many calls are refused", () => {
    const assembler = new ToolCallAssembler();
    const many = Array.from({ length: 129 }, (_, index) => call(index, `c${index}`, "ls", "{}"));
    expect(assembler.add(many)).toBe(false);
  });
});

const draft = (id: string | undefined, name = "ls") => ({ id, name, arguments: "" });

describe("calls fit for a history", () => {
  const request = modelRequest(
    [
      { role: "user", content: "go" },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "call_0", type: "function", function: { name: "ls", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "call_0", content: "ok" },
    ],
    { tools: [tool("my.tool")] },
  );
  test("ids that are missing, repeated or already in the conversation are replaced", () => {
    const calls = finishCalls([draft("x"), draft("x"), draft(undefined), draft("call_0")], request) ?? [];
    const ids = calls.map(({ id }) => id);
    expect(ids[0]).toBe("x");
    expect(new Set(ids).size).toBe(4);
    expect(ids).not.toContain("call_0");
    expect(calls.every((one) => one.arguments === "{}")).toBe(true);
  });

  test("names that a strict API would refuse are made harmless unless they are declared", () => {
    const calls = finishCalls([draft("a", "my.tool"), draft("b", "no such tool!")], request) ?? [];
    expect(calls.map(({ name }) => name)).toEqual(["my.tool", "no_such_tool_"]);
  });

  test("a call without a name is no answer", () => {
    expect(finishCalls([draft("a", "")], request)).toBeNull();
  });
});
