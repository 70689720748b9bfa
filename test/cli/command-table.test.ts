import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Home } from "../../src/app/home.ts";
import { Installation } from "../../src/app/installation.ts";
import { type CommandSpec, commandTable } from "../../src/cli/command-table.ts";
import { beamclaw } from "../support/daemon-double.ts";

/** `agent create <name>`, `status` …: every command that can be run. */
function usages(table: readonly CommandSpec[], prefix = ""): readonly string[] {
  return table.flatMap((spec) =>
    spec.commands === undefined
      ? [`${prefix}${spec.usage}`]
      : usages(spec.commands, `${prefix}${spec.usage.split(" ")[0]} `),
  );
}

const flags = (table: readonly CommandSpec[]): readonly string[] =>
  table.flatMap(({ options = [], commands = [] }) => [
    ...options.filter(({ about }) => !about.startsWith("(internal)")).map((option) => option.flags),
    ...flags(commands),
  ]);

const documentation = readFileSync(join(new Installation().root, "docs", "cli.md"), "utf8");

test("the documentation names every command and option, and no others", () => {
  const documented = [...documentation.matchAll(/^\| `beamclaw ([^`]+)`/gm)].map((match) => match[1] ?? "");
  expect(new Set(documented)).toEqual(new Set(usages(commandTable)));
  for (const flag of flags(commandTable)) expect(documentation).toContain(`\`${flag}\``);
});

test.each(["bash", "zsh", "fish"])("completions for %s name every command and option", async (shell) => {
  const { code, out } = await beamclaw(new Home("/nowhere"), ["completion", shell], { cwd: "/" });
  expect(code).toBe(0);
  for (const usage of usages(commandTable)) expect(out).toContain(usage.split(" <")[0]?.split(" ").at(-1));
  expect(out).toContain(shell === "fish" ? "-l json" : "--json");
  expect(out).not.toContain("ready-fd");
});
