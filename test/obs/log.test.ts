import { describe, expect, test } from "vitest";
import { MAX_CHARACTERS, MAX_LINES } from "../../src/obs/line-ring.ts";
import { ProcessLog } from "../../src/obs/log.ts";
import { createScrubber } from "../../src/obs/scrubber.ts";
import { verifies } from "../support/verifies.ts";
import { plantedSecrets } from "./corpus/secrets.ts";
import { leaks } from "./support/hostile-text.ts";

function openLog(level: "info" | "debug" = "info") {
  const lines: string[] = [];
  const log = new ProcessLog({
    level,
    scrubber: createScrubber({ literals: ["known-configured-value"] }),
    sink: { write: (line) => lines.push(line), close: () => Promise.resolve() },
    now: () => 1_700_000_000_000,
  });
  return { log, lines };
}

test("a line is one JSON object: level, time, event, fields", () => {
  const { log, lines } = openLog();
  log.info("something", { n: 1, text: "a\nb" });
  log.debug("too_quiet");
  expect(lines).toEqual([
    '{"level":"info","time":"2023-11-14T22:13:20.000Z","n":1,"text":"a\\nb","event":"something"}\n',
  ]);
});

test("the level can be changed while it runs", () => {
  const { log, lines } = openLog();
  log.setLevel("debug");
  log.debug("now");
  expect(lines).toHaveLength(1);
});

test("a secret that a reload brings is known from then on", () => {
  const { log, lines } = openLog();
  log.setScrubber(createScrubber({ literals: ["another-configured-value"] }));
  log.info("said", { text: "another-configured-value" });
  expect(lines.join("")).not.toContain("another-configured-value");
});

verifies(["W20", "W60"], "no secret reaches a line, in whatever field it comes", () => {
  const { log, lines } = openLog();
  for (const { secret } of plantedSecrets) {
    log.error("failed", { error: `401 for ${secret}`, nested: { list: [secret] }, apiKey: secret });
  }
  log.warn("configured", { note: "known-configured-value" });
  expect(
    plantedSecrets.filter((planted) => leaks(lines.join(""), planted.secret.slice(planted.publicPrefix))),
  ).toEqual([]);
  expect(lines.join("")).not.toContain("known-configured-value");
  for (const line of lines) expect(JSON.parse(line)).toHaveProperty("event");
});

test("a line without bound is reduced to what identifies it", () => {
  const { log, lines } = openLog();
  log.error("huge", {
    run_id: "r1",
    text: "x".repeat(100_000),
    list: Array.from({ length: 9_000 }, () => "y"),
  });
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ level: "error", event: "huge", run_id: "r1" });
  expect(lines[0]?.length).toBeLessThan(300);
});

test("fields that cannot be told lose a line and nothing else", () => {
  const { log, lines } = openLog();
  const circular: Record<string, unknown> = { big: 12n };
  circular["self"] = circular;
  log.info("odd", circular);
  log.info("worse", {
    get field(): string {
      throw new Error("no");
    },
  });
  log.info("fine");
  expect(lines.at(-1)).toContain('"event":"fine"');
});

describe("recent lines", () => {
  test("are kept up to a number of lines and a number of characters", () => {
    const { log } = openLog();
    for (let n = 0; n < MAX_LINES + 10; n += 1) log.info("e", { n });
    expect(log.recent(5_000)).toHaveLength(MAX_LINES);
    expect(log.recent(1)[0]).toContain(`"n":${MAX_LINES + 9}`);
    expect(log.recent(0)).toEqual([]);
    for (let n = 0; n < 200; n += 1) log.info("e", { text: "z".repeat(10_000) });
    expect(log.recent(5_000).join("").length).toBeLessThanOrEqual(MAX_CHARACTERS);
  });

  test("reach those who follow until they leave; one who throws is left out and harms nobody", () => {
    const { log, lines } = openLog();
    const heard: string[] = [];
    log.follow(() => {
      throw new Error("gone");
    });
    const leave = log.follow((line) => heard.push(line));
    log.info("one");
    leave();
    log.info("two");
    expect(heard).toHaveLength(1);
    expect(heard[0]).not.toContain("\n");
    expect(lines).toHaveLength(2);
  });
});
