import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { bootstrapFiles, Workspaces } from "../../src/agent/workspace.ts";
import { Installation } from "../../src/app/installation.ts";
import { type AgentName, asId } from "../../src/domain/ids.ts";

const templates = new Installation().agentTemplates;
const defaultAgent = asId<AgentName>("default");
let root = "";
let workspaces = new Workspaces({ root, templates, defaultAgent });

beforeEach(() => {
  root = join(mkdtempSync(join(tmpdir(), "beamclaw-agents-")), "agents");
  workspaces = new Workspaces({ root, templates, defaultAgent });
});
afterEach(() => {
  rmSync(join(root, ".."), { recursive: true });
});

const folder = (name: string, ...rest: string[]): string => join(root, name, ...rest);

test("a new agent has its eight files, a memory folder, and no name of its own yet", async () => {
  expect(await workspaces.create("ada")).toEqual({
    kind: "ok",
    agent: { name: "ada", identityName: null, path: folder("ada") },
  });
  expect(readdirSync(folder("ada")).toSorted()).toEqual([...bootstrapFiles, "memory"].toSorted());
  writeFileSync(folder("ada", "IDENTITY.md"), "# Identity\n\n- **Name:** Ada the Owl\n");
  expect(await workspaces.list()).toEqual([
    { name: "ada", identityName: "Ada the Owl", path: folder("ada") },
  ]);
});

test("creating never overwrites, and of two creators one is told", async () => {
  const results = await Promise.all([
    workspaces.create("ada"),
    workspaces.create("ada"),
    workspaces.create("ada"),
  ]);
  expect(results.map(({ kind }) => kind).toSorted()).toEqual(["ok", "refused", "refused"]);
  expect(await workspaces.create("ada")).toMatchObject({ kind: "refused", code: "agent_exists" });
  expect(readdirSync(root)).toEqual(["ada"]);
});

test("the default agent is made once and stays", async () => {
  await workspaces.prepare();
  writeFileSync(folder("default", "SOUL.md"), "mine");
  await workspaces.prepare();
  expect(readFileSync(folder("default", "SOUL.md"), "utf8")).toBe("mine");
  expect(await workspaces.delete("default")).toMatchObject({ code: "agent_protected" });
});

test("a deletion that a crash cut short is finished at the next start", async () => {
  mkdirSync(folder(".old-ada-1", "memory"), { recursive: true });
  await workspaces.prepare();
  expect(readdirSync(root)).toEqual(["default"]);
});

test("deleting removes the folder and nothing beside it", async () => {
  await workspaces.create("ada");
  await workspaces.create("bob");
  expect(await workspaces.delete("ada")).toMatchObject({ kind: "ok" });
  expect(readdirSync(root)).toEqual(["bob"]);
  expect(await workspaces.delete("ada")).toMatchObject({ code: "agent_not_found" });
});

test("a link is no agent, and what it leads to is left alone", async () => {
  await workspaces.create("bob");
  const elsewhere = join(root, "..", "elsewhere");
  mkdirSync(elsewhere);
  symlinkSync(elsewhere, folder("link"));
  expect(workspaces.exists(asId<AgentName>("link"))).toBe(false);
  expect(await workspaces.delete("link")).toMatchObject({ code: "agent_not_found" });
  expect(await workspaces.create("link")).toMatchObject({ code: "agent_exists" });
  expect(existsSync(elsewhere)).toBe(true);
});

test("rehatching restores the templates, wipes daily logs, keeps skills and other files", async () => {
  await workspaces.create("ada");
  rmSync(folder("ada", "BOOTSTRAP.md"));
  writeFileSync(folder("ada", "SOUL.md"), "changed");
  writeFileSync(folder("ada", "memory", "2026-01-01.md"), "a day");
  mkdirSync(folder("ada", "skills", "knit"), { recursive: true });
  writeFileSync(folder("ada", "notes.txt"), "kept");
  expect(await workspaces.rehatch("ada")).toMatchObject({ kind: "ok" });
  expect(readFileSync(folder("ada", "SOUL.md"), "utf8")).toBe(
    readFileSync(join(templates, "SOUL.md"), "utf8"),
  );
  expect(existsSync(folder("ada", "BOOTSTRAP.md"))).toBe(true);
  expect(readdirSync(folder("ada", "memory"))).toEqual([]);
  expect(existsSync(folder("ada", "skills", "knit"))).toBe(true);
  expect(existsSync(folder("ada", "notes.txt"))).toBe(true);
});

test("showing gives every file, missing ones as null, long ones cut between characters", async () => {
  await workspaces.create("ada");
  rmSync(folder("ada", "BOOTSTRAP.md"));
  writeFileSync(folder("ada", "MEMORY.md"), "é".repeat(20_000).slice(0, 19_999) + "x");
  const shown = await workspaces.show("ada");
  const text = (file: string): string | null | undefined =>
    shown.kind === "ok" ? shown.agent.files.find(({ name }) => name === file)?.text : undefined;
  expect(text("BOOTSTRAP.md")).toBeNull();
  expect(text("MEMORY.md")).toMatch(/^é+\n\[… cut after 20480 bytes\]\n$/);
  expect(await workspaces.show("nobody")).toMatchObject({ code: "agent_not_found" });
});

test("whatever the name, nothing outside the root is touched", async () => {
  await workspaces.create("ada");
  const before = readdirSync(join(root, ".."));
  const names = fc.oneof(fc.constantFrom("..", ".", "", "/", "../x", "a/b", "a\0b", "É", "A"), fc.string());
  await fc.assert(
    fc.asyncProperty(names, async (name) => {
      fc.pre(!/^[a-z0-9_-]{1,64}$/.test(name));
      for (const act of ["create", "delete", "rehatch", "show"] as const) {
        expect(await workspaces[act](name)).toMatchObject({ kind: "refused", code: "invalid_request" });
      }
    }),
    { numRuns: 50 },
  );
  expect(readdirSync(join(root, ".."))).toEqual(before);
  expect(readdirSync(root)).toEqual(["ada"]);
});

test("the templates are small: a fresh agent's prompt has to stay under 2,500 tokens", () => {
  const bytes = bootstrapFiles.map((file) => readFileSync(join(templates, file)).length);
  expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(6_000); // about 1,500 tokens
});
