import { join } from "node:path";
import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { builtinTools, processRunner } from "../../src/tools/builtin-tools.ts";
import { ToolRegistry } from "../../src/tools/registry.ts";
import { toolConfig } from "../../src/tools/tool-config.ts";
import { verifies } from "../support/verifies.ts";
import { peer } from "./http-peer.ts";
import { call, clock, contextIn, temporaryFolder } from "./workbench.ts";

function registryOf(config: unknown = {}, env: Record<string, string> = {}): ToolRegistry {
  const parsed = toolConfig().parse(config);
  const runner = processRunner(parsed, clock, "test");
  return new ToolRegistry(builtinTools(parsed, { clock, runner, env, hidden: [], webSearchKey: null }));
}

const names = [
  ["terminal", ["command"], ["command"], "supervised", "external"],
  ["bash", ["script"], ["script"], "supervised", "external"],
  ["curl", ["url", "method", "headers", "body"], ["url"], "supervised", "external"],
  ["jq", ["filter", "input"], ["filter", "input"], "read_only", "none"],
  ["read_file", ["path"], ["path"], "read_only", "none"],
  ["write_file", ["path", "content"], ["path", "content"], "supervised", "internal"],
  ["delete_file", ["path"], ["path"], "supervised", "internal"],
  ["web_search", ["query", "count", "freshness", "country"], ["query"], "read_only", "none"],
] as const;

test.each(names)("%s takes %j, needs %j", (name, all, required, minAutonomy, leastEffect) => {
  const tool = registryOf().get(name);
  const { properties, required: needed } = tool?.definition.parameters ?? {};
  expect(Object.keys(properties ?? {})).toEqual(all);
  expect(needed).toEqual(required);
  expect(tool).toMatchObject({ minAutonomy, leastEffect });
});

verifies(["W66"], "the tools are complete, in one order, however often they are built", () => {
  const offered = (): string => JSON.stringify(registryOf().offered("full", true));
  expect(
    registryOf()
      .offered("full", true)
      .map(({ name }) => name),
  ).toEqual(names.map(([name]) => name));
  expect(offered()).toBe(offered());
});

test("all definitions together stay small in the prompt", () => {
  expect(JSON.stringify(registryOf().offered("full", true)).length).toBeLessThan(4_000);
});

test("read_only sees tools without effects", () => {
  expect(
    registryOf()
      .offered("read_only", true)
      .map(({ name }) => name),
  ).toEqual(["jq", "read_file", "web_search"]);
});

verifies(["W26", "W27"], "of the environment, each tool gets the names of its list", async () => {
  const { origin, port, seen } = await peer((_, response) => response.end());
  const http = { ports: [port], allowPrivate: true, expandEnv: ["API_KEY"] };
  const env = {
    API_KEY: "key-value",
    SHELL_ONLY: "shell-value",
    OTHER: "other-value",
    PATH: "/usr/bin:/bin",
  };
  const registry = registryOf({ http, shell: { env: ["PATH", "SHELL_ONLY"], sandbox: "off" } }, env);
  const context = contextIn(await temporaryFolder());
  const run = async (name: string, args: unknown) => {
    const tool = registry.get(name);
    return tool === undefined ? "" : (await call(tool, args, context)).text;
  };
  await run("curl", { url: `${origin}/$API_KEY/$SHELL_ONLY/$OTHER` });
  expect(seen[0]?.url).toBe("/key-value/$SHELL_ONLY/$OTHER");
  const printed = await run("terminal", { command: "env" });
  expect(printed).toContain("SHELL_ONLY=shell-value");
  expect(printed).not.toMatch(/key-value|other-value/);
});

describe("configuration", () => {
  test("everything has a default, and the defaults are closed", () => {
    expect(toolConfig().parse({})).toMatchObject({
      files: { roots: ["workspace"] },
      http: { allow: [], deny: [], ports: [80, 443], allowPrivate: false, expandEnv: [] },
      shell: {
        timeoutSeconds: 60,
        maxOutputBytes: 262_144,
        env: ["PATH", "HOME", "LANG", "TERM"],
        sandbox: "auto",
      },
      webSearch: { apiKey: { env: "BRAVE_API_KEY" }, maxResults: 10 },
    });
  });

  test.each([
    [{ files: { roots: ["relative/path"] } }, "files.roots.0"],
    [{ http: { allow: ["https://example.com/"] } }, "http.allow.0"],
    [{ http: { ports: [0] } }, "http.ports.0"],
    [{ http: { expandEnv: ["$HOME"] } }, "http.expandEnv.0"],
    [{ shell: { timeoutSeconds: 0 } }, "shell.timeoutSeconds"],
    [{ shell: { sandbox: "maybe" } }, "shell.sandbox"],
    [{ webSearch: { baseUrl: "ftp://x" } }, "webSearch.baseUrl"],
  ])("%j is wrong at %s", (config, path) => {
    const result = toolConfig().safeParse(config);
    expect(result.error?.issues.map((issue) => issue.path.join("."))).toEqual([path]);
  });

  test("docs/tools.md names every tool and every key", async () => {
    const text = await readFile(join(import.meta.dirname, "../../docs/tools.md"), "utf8");
    const keys = Object.entries(toolConfig().shape).flatMap(([section, schema]) =>
      Object.keys(schema.unwrap().shape).map((key) => `\`${section}.${key}\``),
    );
    const wanted = [...names.map(([name]) => `\`${name}\``), ...keys];
    expect(wanted.filter((name) => !text.includes(name))).toEqual([]);
  });
});
