import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { errorCatalogue } from "../src/domain/error-catalogue.ts";
import { eventTypes } from "../src/domain/event.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");

/** First cells of a Markdown table's rows that hold a code span. */
const firstCells = (text: string): readonly string[] =>
  [...text.matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1] ?? "");

describe("docs say what the code does, and the reverse", () => {
  test("every error code is documented with its status, and no other", () => {
    const documented = [...read("docs/errors.md").matchAll(/^\| `([a-z_]+)` \| (\d+) \|/gm)].map(
      ([, code, status]) => `${code} ${status}`,
    );
    const known = Object.entries(errorCatalogue).map(([code, { status }]) => `${code} ${status}`);
    expect(documented.toSorted()).toEqual(known.toSorted());
  });

  test("every event type is documented, and no other", () => {
    const section = /## Events\n([\s\S]*?)(?=\n## |$)/.exec(read("docs/http-api.md"))?.[1] ?? "";
    expect(firstCells(section).toSorted()).toEqual([...eventTypes].toSorted());
  });

  test("every link between documents leads somewhere", () => {
    const files = ["README.md", "CLAUDE.md", "DECISIONS.md", "STATUS.md"].concat(
      readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
        .filter((name) => name.endsWith(".md"))
        .map((name) => join("docs", name)),
    );
    const dead = files.flatMap((file) =>
      [...read(file).matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
        .map((match) => match[1] ?? "")
        .filter((target) => !existsSync(join(root, dirname(file), target)))
        .map((target) => `${file} → ${target}`),
    );
    expect(dead).toEqual([]);
  });
});
