import { type ChildProcess, spawn, type SpawnOptions } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { transformSync } from "esbuild";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Home } from "../../src/app/home.ts";
import { Installation } from "../../src/app/installation.ts";
import { acquireLock, readOwner } from "../../src/app/lock.ts";
import { verifies } from "../support/verifies.ts";

/** The real launcher and the built command line, in an installation whose daemon is a stub. */
const { root } = new Installation();
let base = "";
let installation = "";
let home: Home;

beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), "beamclaw-system-"));
  installation = join(base, "installation");
  for (const part of ["bin", "dist", "package.json"]) {
    cpSync(join(root, part), join(installation, part), { recursive: true });
  }
  for (const part of ["config", "node_modules"]) symlinkSync(join(root, part), join(installation, part));
  const stub = pathToFileURL(join(root, "test", "support", "stub-daemon.ts")).href;
  writeFileSync(
    join(installation, "dist", "daemon.js"),
    `export { prepareDaemon, runDaemon } from ${JSON.stringify(stub)};\n`,
  );
  writeFileSync(
    join(base, "old-node.cjs"),
    'globalThis.process = Object.create(process, { versions: { value: { node: "18.20.0" } } });\n',
  );
});
afterAll(() => {
  rmSync(base, { recursive: true });
});
beforeEach(() => {
  home = new Home(join(mkdtempSync(join(base, "home-")), "claw"));
});

interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly out: string;
  readonly err: string;
}

const launcher = (): string => join(installation, "bin", "beamclaw");

function launch(argv: readonly string[], options: SpawnOptions = {}): ChildProcess {
  const env = { PATH: process.env["PATH"], HOME: base, BEAMCLAW_HOME: home.root, ...options.env };
  return spawn(process.execPath, argv, { cwd: tmpdir(), stdio: ["ignore", "pipe", "pipe"], ...options, env });
}

async function ended(child: ChildProcess): Promise<Ended> {
  const texts = ["", ""];
  child.stdout?.on("data", (chunk) => (texts[0] += String(chunk)));
  child.stderr?.on("data", (chunk) => (texts[1] += String(chunk)));
  const [code, signal]: (number | string | null)[] = await once(child, "close");
  return {
    code: typeof code === "number" ? code : null,
    signal: typeof signal === "string" ? signal : null,
    out: texts[0] ?? "",
    err: texts[1] ?? "",
  };
}

const beamclaw = (...argv: readonly string[]): Promise<Ended> => ended(launch([launcher(), ...argv]));
const underOldNode = (...argv: readonly string[]): ChildProcess =>
  launch(["--require", join(base, "old-node.cjs"), launcher(), ...argv]);

/** Resolves when a process that is not our child has ended. */
async function gone(pid: number): Promise<void> {
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

describe("the daemon's life", () => {
  test("start, status, a second start, stop", async () => {
    const started = await beamclaw("start");
    expect(started).toMatchObject({ code: 0, out: "" });
    expect(started.err).toContain("beamclaw answers at http://127.0.0.1:1");
    expect(started.err).toContain(home.tokenFile); // the path; the token itself is for terminals only
    expect(await beamclaw("status")).toMatchObject({ code: 0 });
    expect(await beamclaw("start")).toMatchObject({
      code: 1,
      err: expect.stringContaining("running already"),
    });
    expect(acquireLock(home, { pid: 1, version: "", startedAt: 0 }).kind).toBe("held");
    expect(await beamclaw("stop")).toMatchObject({ code: 0, out: "stopped\n" });
    expect(await beamclaw("status")).toMatchObject({ code: 69 });
    expect(statSync(home.consoleFile).mode & 0o777).toBe(0o600);
  });

  verifies("W62", "a daemon that was killed leaves no lock behind, and two never share a home", async () => {
    await beamclaw("start");
    const victim = readOwner(home)?.pid ?? 0;
    const rival = await beamclaw("start", "--foreground");
    expect(rival).toMatchObject({ code: 1, err: expect.stringContaining(`held by ${victim}`) });
    process.kill(victim, "SIGKILL");
    await gone(victim);
    expect(await beamclaw("stop")).toMatchObject({ code: 69, err: expect.stringContaining(String(victim)) });
    expect(await beamclaw("start")).toMatchObject({ code: 0 });
    expect(readOwner(home)?.pid).not.toBe(victim);
    expect(await beamclaw("restart")).toMatchObject({ code: 0, out: "stopped\n" });
    expect(await beamclaw("stop")).toMatchObject({ code: 0 });
  });

  verifies("W67", "a start that fails shows what the daemon said, and its exit code", async () => {
    const failed = await ended(launch([launcher(), "start"], { env: { BEAMCLAW_STUB: "fail" } }));
    expect(failed).toMatchObject({ code: 7, out: "" });
    expect(failed.err).toContain("made of cheese");
  });
});

describe("the launcher", () => {
  test("is understood by any Node, however old", () => {
    const source = readFileSync(join(root, "bin", "beamclaw"), "utf8");
    expect(() => transformSync(source, { target: "es5", logLevel: "silent" })).not.toThrow();
  });

  test("under an old Node the pinned one runs: same output, same exit codes", async () => {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    expect(await ended(underOldNode("version"))).toMatchObject({ code: 0, out: `${version}\n`, err: "" });
    expect(await ended(underOldNode("nonsense"))).toMatchObject({ code: 2 });
    expect(await ended(underOldNode("status"))).toMatchObject({ code: 69 });
  });

  test("under an old Node signals reach the daemon, and its end is ours", async () => {
    const child = underOldNode("start", "--foreground");
    const end = ended(child);
    await once(child.stderr ?? child, "data"); // the greeting: it is ready
    child.kill("SIGTERM");
    expect(await end).toMatchObject({ code: 0, signal: null });
    expect(readOwner(home)).toBeNull();
  });

  test("without a Node that can run it, one line says what to do", async () => {
    const bare = join(base, "bare");
    mkdirSync(bare);
    cpSync(join(root, "bin"), join(bare, "bin"), { recursive: true });
    const preload = join(base, "old-node.cjs");
    const { code, out, err } = await ended(
      launch(["--require", preload, join(bare, "bin", "beamclaw"), "version"]),
    );
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/^beamclaw: needs Node 24 or newer, this is 18\.20\.0\. .*npm install.*\n$/);
    const unbuilt = await ended(launch([join(bare, "bin", "beamclaw"), "version"]));
    expect(unbuilt).toMatchObject({ code: 1, out: "" });
    expect(unbuilt.err).toMatch(/^beamclaw: not built yet\. .*npm run build.*\n$/);
  });

  test("works through a symbolic link, from anywhere", async () => {
    const link = join(base, "beamclaw-link");
    symlinkSync(launcher(), link);
    expect(await ended(launch([link, "version"], { cwd: "/" }))).toMatchObject({ code: 0 });
  });
});
