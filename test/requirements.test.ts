import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { requirements } from "./requirements.ts";

const folder = dirname(fileURLToPath(import.meta.url));

/** Ids that tests cite, by file; citations are `verifies("W1", …)` or `verifies(["W1", "W2"], …)`. */
const cited = new Set(
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) => [
      ...readFileSync(join(folder, name), "utf8").matchAll(/\bverifies\(\s*(\[[^\]]*\]|"[^"]*")/g),
    ])
    .flatMap(([, ids]) => [...(ids ?? "").matchAll(/"([^"]+)"/g)].map(([, id]) => id ?? "")),
);

test("every requirement is cited by a test", () => {
  expect(Object.keys(requirements).filter((id) => !cited.has(id))).toEqual([]);
});

test("every citation names a requirement", () => {
  expect([...cited].filter((id) => !(id in requirements))).toEqual([]);
});
