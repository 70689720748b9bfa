import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Loading code is most of what a start costs, in time and in memory. What appears here without need belongs behind
 * an `await import`, a `lazily`, or among the deferred packages of `scripts/build.ts`.
 */
const expectedFiles = 28;
const notForAStart = {
  files: /^(zod|yaml|semver|undici|pino-pretty|program|instruments|ajv|fast-json|light-my-request|cors)/,
  builtins: /deps\/undici\/undici$|http2\/core$|^NativeModule (readline|inspector|zlib)$/,
};

interface Loaded {
  readonly files: readonly string[];
  readonly builtins: readonly string[];
}

/** What a daemon has loaded from its start until it was told to stop as soon as it answered. */
async function startOnce(home: string): Promise<Loaded> {
  const report = join(home, "loaded.json");
  const preload = join(root, "test", "support", "loaded-files.cjs");
  const launcher = join(root, "bin", "beamclaw");
  const child = spawn(process.execPath, ["--require", preload, launcher, "start", "--foreground"], {
    env: { BEAMCLAW_HOME: home, BEAMCLAW_PORT: "0", HOME: home, LOADED_FILES: report },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const exit = once(child, "exit");
  await once(child.stderr, "data"); // the greeting: it answers
  child.kill("SIGTERM");
  expect(await exit).toEqual([0, null]);
  return JSON.parse(readFileSync(report, "utf8")) as Loaded;
}

test("a start loads what it needs and nothing else", async () => {
  const home = mkdtempSync(join(tmpdir(), "beamclaw-start-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  await startOnce(home); // the first one checks the configuration and remembers that
  const { files, builtins } = await startOnce(home);
  const built = files.filter((url) => url.includes("/dist/")).map((url) => basename(url));
  expect(built.filter((name) => notForAStart.files.test(name))).toEqual([]);
  expect(builtins.filter((name) => notForAStart.builtins.test(name))).toEqual([]);
  expect(built.length > expectedFiles ? built : []).toEqual([]);
});
