import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { RecordingObs } from "../../src/obs/recording-obs.ts";
import { verifies } from "../support/verifies.ts";
import { raiseAll } from "./support/every-event.ts";

const document = readFileSync(new URL("../../docs/observability.md", import.meta.url), "utf8");

/** Rows of the table under `heading`: the first cell's name, then the other cells. */
function rows(heading: string): readonly (readonly [string, ...string[]])[] {
  const section = document.split(`## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  return section
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) => {
      const [, first = "", ...others] = line.split("|");
      return [first.replaceAll("`", "").trim(), ...others.map((cell) => cell.trim())];
    });
}

const namesIn = (cell: string): readonly string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name).toSorted();

verifies("W65", "the table of events is what the code writes, both ways", () => {
  const obs = new RecordingObs();
  raiseAll(obs.events);
  const written: Record<string, string[]> = {};
  for (const { event, level, fields } of obs.records) {
    const known = new Set([...(written[event] ?? []), level, ...Object.keys(fields)]);
    written[event] = [...known].toSorted();
  }
  const documented = rows("Events").map(([event, levels = "", fields = ""]) => [
    event,
    [...(levels.match(/debug|info|warn|error/g) ?? []), ...namesIn(fields)].filter(unique).toSorted(),
  ]);
  expect(Object.fromEntries(documented)).toEqual(written);
});

test("the table of metrics is what is rendered, both ways", async () => {
  const obs = new RecordingObs();
  raiseAll(obs.events);
  obs.metrics.observe({
    runs: () => Promise.resolve({ queued: 1 }),
    oldestQueuedSeconds: () => Promise.resolve(1),
  });
  const text = await obs.metrics.render();
  const rendered = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = "", type = ""]) => {
    const samples = text.matchAll(new RegExp(`^${name}(?:_bucket|_sum|_count)?\\{([^}]*)\\}`, "gm"));
    const labels = [...samples].flatMap(([, list = ""]) =>
      [...list.matchAll(/(\w+)="/g)].map(([, label = ""]) => label),
    );
    return [
      name,
      type,
      labels
        .filter((label) => label !== "le")
        .filter(unique)
        .toSorted(),
    ];
  });
  const documented = rows("Metrics").map(([name, type, labels = ""]) => [name, type, namesIn(labels)]);
  expect(new Set(documented)).toEqual(new Set(rendered));
});

const unique = (value: string, index: number, all: readonly string[]): boolean =>
  all.indexOf(value) === index;
