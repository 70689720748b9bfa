import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { Installation } from "../../src/app/installation.ts";
import { type ConfigSource, loadConfig } from "../../src/app/config.ts";

const defaultsText = new Installation().readDefaults();

let source: ConfigSource & { readonly memory: { readonly file: string; readonly build: string } };

beforeEach(() => {
  const home = mkdtempSync(join(tmpdir(), "beamclaw-memory-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const memory = { file: join(home, "checked.json"), build: "1" };
  source = { env: {}, home, file: join(home, "config.yaml"), fileRequired: false, defaultsText, memory };
});

const write = (text: string): void => writeFileSync(source.file, text);

/** Changes what is remembered, so that a test sees whether it was used. */
function tamper(): void {
  const text = readFileSync(source.memory.file, "utf8");
  writeFileSync(source.memory.file, text.replace(`"autonomy":"supervised"`, `"autonomy":"full"`));
}

function autonomy(over: Partial<ConfigSource> = {}): string {
  const loaded = loadConfig({ ...source, ...over });
  return loaded.kind === "ok" ? loaded.config.autonomy : loaded.kind;
}

describe("a checked configuration is remembered", () => {
  test("as it was, for the same file, defaults, build and environment", () => {
    write("loop: { turnSeconds: 77 }\n");
    const first = loadConfig(source);
    const second = loadConfig(source);
    expect(second).toEqual(first);
    tamper();
    expect(autonomy()).toBe("full"); // from the memory
  });

  test.each([
    ["another file", () => write("loop: { turnSeconds: 78 }\n"), {}],
    ["other defaults", () => undefined, { defaultsText: `${defaultsText}\n# more\n` }],
    ["another port", () => undefined, { env: { BEAMCLAW_PORT: "1234" } }],
  ])("but not for %s", (_, change, over) => {
    expect(autonomy()).toBe("supervised");
    tamper();
    change();
    expect(autonomy(over)).toBe("supervised");
  });

  test("but not for another build", () => {
    expect(autonomy()).toBe("supervised");
    tamper();
    expect(autonomy({ memory: { ...source.memory, build: "2" } })).toBe("supervised");
  });

  test("but not with a warning or a problem, which is told every time", () => {
    write("nonsense: 1\n");
    expect([loadConfig(source), loadConfig(source)].map(({ warnings }) => warnings.length)).toEqual([1, 1]);
    write("autonomy: sometimes\n");
    expect([autonomy(), autonomy()]).toEqual(["invalid", "invalid"]);
  });

  test("a secret that has gone is noticed, with its line", () => {
    write("provider: openai\n");
    const env = { OPENAI_API_KEY: "k" };
    expect([autonomy({ env }), autonomy({ env })]).toEqual(["supervised", "supervised"]);
    expect(loadConfig(source)).toMatchObject({ kind: "invalid", problems: [{ path: "provider", line: 1 }] });
  });

  test("a damaged memory is forgotten", () => {
    expect(autonomy()).toBe("supervised");
    writeFileSync(source.memory.file, '{"of":');
    expect(autonomy()).toBe("supervised");
    expect(JSON.parse(readFileSync(source.memory.file, "utf8"))).toHaveProperty("config");
  });
});
