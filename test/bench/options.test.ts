import { expect, test } from "vitest";
import { goals, readOptions } from "../../bench/options.ts";

test("by default all goals, seven rounds, the product", () => {
  const options = readOptions([]);
  expect(options).toMatchObject({ rounds: 7, subject: "beamclaw" });
  expect([...(options?.only ?? [])]).toEqual([...goals]);
  expect((options?.size.serialTurns ?? 0) * 7).toBeGreaterThanOrEqual(5000);
});

test("takes a choice of goals and fewer rounds", () => {
  const options = readOptions(["--only", "G1,G9", "--quick", "--json", "out.json"]);
  expect(options).toMatchObject({ only: new Set(["G1", "G9"]), rounds: 3, json: "out.json" });
});

test.each([["--only", "G99"], ["--rounds", "0"], ["--rounds", "many"], ["--subject", "other"], ["--wrong"]])(
  "refuses %s %s",
  (...argv) => {
    expect(() => readOptions(argv)).toThrow(argv[0]);
  },
);

test("asks for the usage", () => {
  expect(readOptions(["--help"])).toBeUndefined();
});
