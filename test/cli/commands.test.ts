import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Home } from "../../src/app/home.ts";
import { beamclaw, prepareHome, type Ran, type RunOptions, startDouble } from "../support/daemon-double.ts";
import { verifies } from "../support/verifies.ts";

let base = "";
let home: Home;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "beamclaw-cli-"));
  home = prepareHome(base);
});
afterEach(() => {
  rmSync(base, { recursive: true });
});

const run = (line: string, options: RunOptions = {}): Promise<Ran> =>
  beamclaw(home, line.split(" "), options);

describe("usage", () => {
  verifies(
    "W67",
    "a missing operand, an unknown command and an unknown option are usage errors",
    async () => {
      const wrong = [
        "agent create",
        "agent show",
        "agent",
        "send",
        "backup",
        "token create",
        "runs cancel",
        "approvals approve",
        "nonsense",
        "status --nonsense",
        "agent list too many",
        "logs --lines many",
        "completion tcsh",
      ];
      for (const line of wrong) {
        const { code, out, err } = await run(line);
        expect([line, code, out]).toEqual([line, 2, ""]);
        expect(err).not.toBe("");
      }
    },
  );

  verifies("W67", "what fails exits non-zero and says what to do", async () => {
    expect(await run("agent show nobody")).toMatchObject({
      code: 1,
      err: expect.stringContaining("agent list"),
    });
    expect(await run("agent delete default")).toMatchObject({
      code: 1,
      err: expect.stringContaining("rehatch"),
    });
    expect(await run("agent create Not/Good")).toMatchObject({ code: 1 });
  });

  verifies("W67", "commands that need the daemon exit with 69 where none runs", async () => {
    const needing =
      "status|stop|reload|sessions list|runs list|approvals list|token list|send hi|backup x|logs -f";
    for (const line of needing.split("|")) {
      const { code, err } = await run(line);
      expect([line, code]).toEqual([line, 69]);
      expect(err).toContain("beamclaw start");
    }
  });

  test("help and version are no errors", async () => {
    expect(await run("help")).toMatchObject({ code: 0, err: "" });
    expect(await run("agent --help")).toMatchObject({ code: 0, out: expect.stringContaining("rehatch") });
    expect((await run("version")).out).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect((await run("--version")).out).toBe((await run("version")).out);
    expect(await beamclaw(home, [])).toMatchObject({ code: 0, out: expect.stringContaining("Usage") });
  });

  test("a relative home is a configuration error", async () => {
    const { code, err } = await run("status", { env: { BEAMCLAW_HOME: "here" } });
    expect(code).toBe(78);
    expect(err).toContain("absolute");
  });
});

describe("without a daemon", () => {
  test("agents are made, listed, shown, rehatched and deleted", async () => {
    expect(await run("agent create ada")).toMatchObject({ code: 0, out: expect.stringContaining("ada") });
    expect(await run("agent create ada")).toMatchObject({ code: 1, err: expect.stringContaining("already") });
    expect(JSON.parse((await run("agent list --json")).out)).toEqual([
      { name: "ada", identityName: null, path: join(home.agents, "ada") },
    ]);
    rmSync(join(home.agents, "ada", "BOOTSTRAP.md"));
    expect((await run("agent show ada")).out).toContain("--- BOOTSTRAP.md ---\n(not found)");
    expect(await run("agent rehatch ada")).toMatchObject({ code: 0 });
    expect(existsSync(join(home.agents, "ada", "BOOTSTRAP.md"))).toBe(true);
    expect(await run("agent delete ada")).toMatchObject({ code: 0 });
    expect(existsSync(join(home.agents, "ada"))).toBe(false);
  });

  test("a person at a terminal is asked before a deletion", async () => {
    await run("agent create ada");
    expect(await run("agent delete ada", { tty: true, input: "n\n" })).toMatchObject({ code: 1 });
    expect(await run("agent delete ada", { tty: true, input: "" })).toMatchObject({ code: 1 });
    expect(existsSync(join(home.agents, "ada"))).toBe(true);
    expect(await run("agent delete ada", { tty: true, input: "y\n" })).toMatchObject({ code: 0 });
    expect(existsSync(join(home.agents, "ada"))).toBe(false);
  });

  test("the configuration is checked, shown and described", async () => {
    expect(await run("config check")).toMatchObject({ code: 0, err: "" });
    writeFileSync(home.configFile, "gateway: { port: 99999 }\nautonomy: never\nlop: {}\n");
    const { code, err } = await run("config check");
    expect(code).toBe(78);
    expect(err).toContain("gateway.port (line 1)");
    expect(err).toContain("autonomy (line 2)");
    expect(err).toContain("Did you mean loop?");
    expect(JSON.parse((await run("config check --json")).out)).toMatchObject({ valid: false });
    writeFileSync(home.configFile, "gateway: { port: 1234 }\n");
    const shown = await run("config show", { env: { OPENAI_API_KEY: "hush" } });
    expect(shown.out).toContain("port: 1234");
    expect(shown.out).not.toContain("hush");
    expect(JSON.parse((await run("config schema")).out)).toMatchObject({ type: "object" });
  });

  test("start refuses a wrong configuration before anything runs", async () => {
    writeFileSync(home.configFile, "gateway: { port: none }\n");
    expect(await run("start")).toMatchObject({ code: 78, err: expect.stringContaining("gateway.port") });
    expect(await run("restart")).toMatchObject({ code: 78 });
  });

  test("doctor names what is off and why, and fails only for what is broken", async () => {
    const healthy = await run("doctor", { env: { BEAMCLAW_PORT: "0" } });
    expect(healthy.code).toBe(0);
    expect(healthy.out).toMatch(/\[ok\] {3}node: v\d+/);
    expect(healthy.out).toContain("[info] tools.webSearch: off: BRAVE_API_KEY is not set");
    expect(healthy.out).toContain("[warn] provider: demo");
    writeFileSync(home.configFile, "autonomy: never\n");
    expect(await run("doctor")).toMatchObject({
      code: 1,
      out: expect.stringContaining("[fail] config: autonomy"),
    });
    writeFileSync(home.configFile, "");
    writeFileSync(home.database, "no database at all, but long enough to be looked at as one".repeat(20));
    expect(await run("doctor", { env: { BEAMCLAW_PORT: "0" } })).toMatchObject({
      code: 1,
      out: expect.stringContaining("[fail] store:"),
    });
  });

  test("the log is read from its file", async () => {
    expect(await run("logs")).toMatchObject({ code: 0, out: "", err: expect.stringContaining("no log yet") });
    writeFileSync(home.logFile, Array.from({ length: 9 }, (_, index) => `{"n":${index}}\n`).join(""));
    expect(await run("logs -n 2")).toMatchObject({ code: 0, out: '{"n":7}\n{"n":8}\n' });
  });
});

describe("with a daemon", () => {
  test("status, reload, backup, config and doctor ask it", async () => {
    await using double = await startDouble(home);
    const { out } = await run("status");
    expect(out).toContain("http://127.0.0.1:18800");
    expect(out).toContain("2 running");
    expect(out).toContain("the disk is full");
    expect(out).toMatch(/^off +tools\.webSearch: BRAVE_API_KEY is not set$/m);
    expect(await run("reload")).toMatchObject({
      code: 0,
      out: "applied: loop.turnSeconds\nneeds `beamclaw restart`: gateway.port\n",
    });
    const problem = { path: "autonomy", line: 1, message: "is wrong", cure: "Mend it." };
    double.outcome = { kind: "invalid", problems: [problem], warnings: [] };
    expect(await run("reload")).toMatchObject({
      code: 78,
      err: expect.stringContaining("autonomy (line 1)"),
    });
    expect(await run("backup copy.db", { cwd: base })).toMatchObject({ code: 0 });
    expect(double.calls).toEqual([`backup ${join(base, "copy.db")}`]);
    writeFileSync(join(base, "copy.db"), "");
    expect(await run("backup copy.db", { cwd: base })).toMatchObject({ code: 1 });
    expect((await run("config show")).out).toContain("maxToolIterations: 10");
    expect((await run("doctor")).out).toContain("[warn] provider: demo");
  });

  test("start says that one runs; stop waits until it is gone", async () => {
    await using double = await startDouble(home);
    expect(await run("start")).toMatchObject({ code: 1, err: expect.stringContaining("running already") });
    expect(await run("stop")).toMatchObject({ code: 0, out: "stopped\n" });
    expect(double.calls).toEqual(["stop"]);
  });

  test("tokens: the secret is shown once, the list never holds it", async () => {
    await using double = await startDouble(home);
    const created = await run("token create web --scope chat --scope tools --agent default --expires 30");
    expect(created).toMatchObject({
      code: 0,
      out: "beamclaw_secret\n",
      err: expect.stringContaining("1970-01-31"),
    });
    expect(double.tokens).toMatchObject([{ name: "web", scopes: ["chat", "tools"], agent: "default" }]);
    const listed = await run("token list --json");
    expect(JSON.parse(listed.out)).toMatchObject([{ name: "web", expires_at: "1970-01-31T00:00:00.000Z" }]);
    expect(listed.out).not.toContain("hash-of");
    expect(await run("token create web")).toMatchObject({ code: 1, err: expect.stringContaining("exists") });
    expect(await run("token create x --agent nobody")).toMatchObject({ code: 1 });
    expect(await run("token revoke web")).toMatchObject({ code: 0 });
    expect(await run("token revoke web")).toMatchObject({ code: 1 });
  });

  test("agents are asked for where the daemon has them", async () => {
    await using _ = await startDouble(home);
    expect(await run("agent create ada")).toMatchObject({ code: 0 });
    expect(await run("agent create ada")).toMatchObject({ code: 1, err: expect.stringContaining("already") });
    expect((await run("agent list")).out).toMatch(/ada +- +\//);
    expect((await run("agent show ada")).out).toContain("--- SOUL.md ---");
    expect(await run("agent rehatch ada")).toMatchObject({ code: 0 });
    expect(await run("agent delete ada")).toMatchObject({ code: 0 });
    expect(await run("agent delete default")).toMatchObject({ code: 1 });
  });

  test("logs follow until the daemon stops", async () => {
    await using double = await startDouble(home);
    expect((await run("logs -n 1")).out).toBe('{"msg":"two"}\n');
    const following = run("logs --follow");
    const { promise: joined, resolve } = Promise.withResolvers<void>();
    double.app.server.on("request", () => {
      setImmediate(resolve);
    });
    await joined;
    double.log('{"msg":"three"}');
    double.stopping.abort();
    expect((await following).out).toContain('{"msg":"one"}\n{"msg":"two"}\n');
  });
});
