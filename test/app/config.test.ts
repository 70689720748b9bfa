import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { formatProblem } from "../../src/app/config-problem.ts";
import { inForce, reloadable } from "../../src/app/config-reload.ts";
import { chooseProvider } from "../../src/app/config-rules.ts";
import { configJsonSchema, isJsonObject } from "../../src/app/config-schema.ts";
import { type InvalidConfig, loadConfig, type LoadedConfig } from "../../src/app/config.ts";
import type { Env } from "../../src/app/home.ts";
import { Installation } from "../../src/app/installation.ts";
import { verifies } from "../support/verifies.ts";

const installation = new Installation();
const defaultsText = installation.readDefaults();
let home = "";

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "beamclaw-config-"));
});
afterAll(() => {
  rmSync(home, { recursive: true });
});

function load(text: string, env: Env = {}): LoadedConfig | InvalidConfig {
  const file = join(home, "config.yaml");
  writeFileSync(file, text);
  return loadConfig({ env, home, file, fileRequired: true, defaultsText });
}

function valid(text: string, env: Env = {}): LoadedConfig {
  const loaded = load(text, env);
  if (loaded.kind === "invalid") throw new Error(loaded.problems.map(formatProblem).join("\n"));
  return loaded;
}

function problems(text: string, env: Env = {}): readonly string[] {
  const loaded = load(text, env);
  return loaded.kind === "invalid" ? loaded.problems.map(formatProblem) : [];
}

describe("defaults", () => {
  test("the shipped file is complete, valid, and loads without a user's file", () => {
    const loaded = loadConfig({
      env: {},
      home,
      file: join(home, "absent.yaml"),
      fileRequired: false,
      defaultsText,
    });
    expect(loaded).toMatchObject({ kind: "ok", warnings: [], user: null });
  });

  test("a file overrides key by key, an empty section changes nothing", () => {
    const { config } = valid("gateway: { port: 1234 }\nloop:\nproviders: { openai: { model: other } }\n");
    expect(config.gateway).toMatchObject({ host: "127.0.0.1", port: 1234 });
    expect(config.loop.maxToolIterations).toBe(10);
    expect(config.providers["openai"]).toMatchObject({ kind: "openai", model: "other" });
  });

  test("an entry of another kind replaces the shipped one of that name", () => {
    expect(valid("providers: { openai: { kind: demo } }").config.providers["openai"]).toEqual({
      kind: "demo",
    });
  });

  test("BEAMCLAW_PORT and BEAMCLAW_HOST override the file; empty ones are unset", () => {
    expect(valid("gateway: { port: 1 }", { BEAMCLAW_PORT: "2" }).config.gateway.port).toBe(2);
    expect(valid("gateway: { port: 1 }", { BEAMCLAW_PORT: "" }).config.gateway.port).toBe(1);
    expect(valid("", { BEAMCLAW_HOST: "0.0.0.0" }).config.gateway).toMatchObject({
      host: "0.0.0.0",
      port: 18800,
    });
    expect(problems("", { BEAMCLAW_PORT: "70000" })).toEqual([expect.stringContaining("BEAMCLAW_PORT")]);
  });

  test("the result is frozen throughout", () => {
    const { config } = valid("");
    expect(Object.isFrozen(config.providers["openai"])).toBe(true);
    expect(Object.isFrozen(config.tools.files.roots)).toBe(true);
  });
});

describe("identity", () => {
  verifies("W70", "an empty BEAMCLAW_USER is unset and merges nobody", () => {
    expect(valid("", { BEAMCLAW_USER: "" }).user).toBeNull();
    expect(valid("", { BEAMCLAW_USER: "alice" }).user).toBe("alice");
  });
});

describe("secrets", () => {
  verifies("W1", "an unset optional secret switches off its feature and nothing else", () => {
    const loaded = valid("", { OPENROUTER_API_KEY: "key-of-openrouter" });
    expect(loaded.off.map(({ path }) => path)).toEqual([
      "providers.openai",
      "providers.anthropic",
      "tools.webSearch",
    ]);
    expect(loaded.off[0]?.reason).toBe("OPENAI_API_KEY is not set");
    expect(chooseProvider(loaded.config, loaded.secrets).name).toBe("openrouter");
    expect(loaded.config.tools.shell.timeoutSeconds).toBe(60);
  });

  verifies("W1", "without any key the demo answers", () => {
    const { config, secrets } = valid("");
    expect(chooseProvider(config, secrets)).toMatchObject({ name: "demo" });
  });

  test("an empty variable counts as unset", () => {
    const { config, secrets } = valid("", { OPENAI_API_KEY: "" });
    expect(chooseProvider(config, secrets).name).toBe("demo");
  });

  test("a provider that is named but has no key is refused at start", () => {
    expect(problems("provider: openai")).toEqual([expect.stringContaining("OPENAI_API_KEY is not set")]);
    expect(problems("provider: openai", { OPENAI_API_KEY: "k" })).toEqual([]);
  });

  test("a file holds a secret; its path starts at the home, and open permissions are remarked", () => {
    writeFileSync(join(home, "key"), "from-a-file\n", { mode: 0o644 });
    const { config, secrets } = valid("providers: { openai: { apiKey: { file: key } } }");
    const entry = config.providers["openai"];
    const secret = entry?.kind === "openai" ? secrets.get(entry.apiKey) : null;
    expect(secret?.reveal()).toBe("from-a-file");
    expect(secrets.remarks()).toEqual([expect.stringContaining("chmod 600")]);
  });

  test("a secret shows itself to no printer", () => {
    const { config, secrets } = valid("", { OPENAI_API_KEY: "very-private" });
    const entry = config.providers["openai"];
    const secret = entry?.kind === "openai" ? secrets.get(entry.apiKey) : null;
    const shown = [String(secret), JSON.stringify({ secret }), inspect({ secret }, { depth: 5 })];
    expect(shown.join()).not.toContain("very-private");
    expect(JSON.stringify(config) + inspect(secrets, { depth: 9, showHidden: true })).not.toContain(
      "very-private",
    );
    expect(secrets.literals()).toEqual(["very-private"]);
  });

  test.each([
    "providers: { openai: { apiKey: hush-hush-hush } }",
    "tools: { webSearch: { apiKey: hush-hush-hush } }",
    "providers: { openai: { headers: { Authorization: Bearer hush-hush-hush } } }",
    "providers: { openai: { baseUrl: 'https://me:hush-hush-hush@example.org/v1' } }",
  ])("a secret in the file is refused without showing it: %s", (text) => {
    const found = problems(text);
    expect(found).toEqual([expect.stringContaining("a secret may not stand in the file")]);
    expect(found.join()).not.toContain("hush");
    expect(found.join()).toContain("{ env: NAME }");
  });
});

describe("mistakes", () => {
  test("all are reported at once, with path, line, allowed values and cure", () => {
    const found = problems("gateway:\n  port: 70000\nautonomy: always\nsessions: { queue: { total: -1 } }\n");
    expect(found).toHaveLength(3);
    expect(found.join("\n")).toContain(
      "gateway.port (line 2): is 70000, allowed is a whole number from 0 to 65535.",
    );
    expect(found.join("\n")).toContain(
      "autonomy (line 3): is another text, allowed is one of read_only, supervised, full.",
    );
    expect(found.join("\n")).toContain("sessions.queue.total (line 4)");
  });

  test("unknown keys warn, name the nearest valid key, and stop nothing", () => {
    const loaded = load(
      "gatway: { port: 1 }\ngateway: { por: 2 }\nproviders: { openai: { api_key: { env: X } } }\n",
    );
    expect(loaded.kind).toBe("ok");
    const warned = loaded.warnings.map(formatProblem).join("\n");
    expect(warned).toContain("Did you mean gateway?");
    expect(warned).toContain("Did you mean gateway.port?");
    expect(warned).toContain("Did you mean providers.openai.apiKey?");
  });

  test("contradictions are found along with wrong values elsewhere", () => {
    const text =
      "provider: nope\nproviders: { openai: { fallbacks: [gone] } }\ntools: { files: { roots: [a/b] } }";
    expect(problems(text).map((line) => line.split(" ")[0])).toEqual([
      "tools.files.roots.0",
      "provider",
      "providers.openai.fallbacks",
    ]);
    expect(problems(text)[0]).toContain("use `workspace` or an absolute path");
  });

  test("a name is not called wrong because the entry that it leads to is", () => {
    expect(problems("provider: mine\nproviders: { mine: { kind: openai, model: m } }")).toEqual([
      expect.stringContaining("providers.mine.baseUrl"),
    ]);
  });

  test.each([
    "a: [1\nb: 2",
    "- 1",
    "a: &x [*x]",
    "a: 1\na: 2",
    `a: ${"[".repeat(60)}${"]".repeat(60)}`,
    "a: *gone",
  ])("text that is no configuration is a problem, not a throw: %s", (text) => {
    expect(load(text).kind === "invalid" || load(text).warnings.length > 0).toBe(true);
  });

  test("a file that the user named must exist", () => {
    const file = join(home, "gone.yaml");
    const loaded = loadConfig({ env: {}, home, file, fileRequired: true, defaultsText });
    expect(loaded).toMatchObject({
      kind: "invalid",
      problems: [{ message: expect.stringContaining("gone.yaml") }],
    });
  });
});

describe("properties", () => {
  const junk = fc.oneof(
    fc.constant("zzz"),
    fc.constant(-1.5),
    fc.constant(true),
    fc.constant([{}]),
    fc.constant({ nested: { deep: 1 } }),
  );
  const leaves = numericPaths(configJsonSchema(), []);

  test("the schema has numbers to try", () => {
    expect(leaves.length).toBeGreaterThan(10);
  });

  test("every wrong number is reported under its path, whatever else is wrong", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.constantFrom(...leaves), { minLength: 1, maxLength: 6 }),
        junk,
        (paths, value) => {
          const text = JSON.stringify(treeOf(paths, value));
          const loaded = load(text);
          const reported = loaded.kind === "invalid" ? loaded.problems.map(({ path }) => path) : [];
          expect(reported.toSorted()).toEqual([...paths].toSorted());
        },
      ),
      { numRuns: 60 },
    );
  });

  test("no document makes the loader throw", () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.oneof(fc.constantFrom("gateway", "providers", "tools"), fc.string()),
          fc.jsonValue(),
        ),
        (tree) => {
          expect(["ok", "invalid"]).toContain(load(JSON.stringify(tree)).kind);
        },
      ),
      { numRuns: 40 },
    );
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
        expect(["ok", "invalid"]).toContain(load(text).kind);
      }),
      { numRuns: 60 },
    );
  });
});

describe("reload", () => {
  test("says which changed keys apply live and which need a restart", () => {
    const old = valid("");
    const next = valid(
      "gateway: { port: 1 }\nloop: { turnSeconds: 5 }\nproviders: { mine: { kind: demo } }\n",
    );
    expect(reloadable(old, next)).toEqual({
      live: ["loop.turnSeconds", "providers.mine"],
      restart: ["gateway.port"],
    });
    expect(reloadable(old, valid(""))).toEqual({ live: [], restart: [] });
    const { live, restart } = reloadable(old, next);
    expect(reloadable(old, inForce(old, next))).toEqual({ live, restart: [] });
    expect(reloadable(inForce(old, next), next)).toEqual({ live: [], restart });
  });

  test("a secret with another value is a change of its key", () => {
    const old = valid("", { OPENAI_API_KEY: "one" });
    const next = valid("", { OPENAI_API_KEY: "two" });
    expect(reloadable(old, next).live).toEqual(["providers.openai.apiKey"]);
  });
});

test("the JSON Schema that ships for editors is the generated one", () => {
  const shipped: unknown = JSON.parse(
    readFileSync(join(installation.root, "config", "beamclaw.schema.json"), "utf8"),
  );
  expect(shipped).toEqual(configJsonSchema());
});

/** Dotted paths of all whole numbers in the schema. */
function numericPaths(node: unknown, path: readonly string[]): readonly string[] {
  if (!isJsonObject(node)) return [];
  if (node["type"] === "integer") return [path.join(".")];
  const properties = node["properties"];
  if (!isJsonObject(properties)) return [];
  return Object.entries(properties).flatMap(([key, child]) => numericPaths(child, [...path, key]));
}

function treeOf(paths: readonly string[], value: unknown): Record<string, unknown> {
  const tree: Record<string, unknown> = {};
  for (const path of paths) set(tree, path.split("."), value);
  return tree;
}

function set(tree: Record<string, unknown>, [first = "", ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    tree[first] = value;
    return;
  }
  const child = tree[first];
  const branch: Record<string, unknown> = isJsonObject(child) ? { ...child } : {};
  set(branch, rest, value);
  tree[first] = branch;
}
