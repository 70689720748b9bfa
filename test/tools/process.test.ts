import { expect, test } from "vitest";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ManualClock } from "../../src/kernel/clock.ts";
import type { ProcessSpec } from "../../src/tools/process.ts";
import { verifies } from "../support/verifies.ts";
import { leash, never, runnerWith, temporaryFolder } from "./workbench.ts";

const PATH = "/usr/local/bin:/usr/bin:/bin";

const sh = (script: string, rest: Partial<ProcessSpec> = {}): ProcessSpec => ({
  argv: ["/bin/sh", "-c", script],
  cwd: "/",
  env: { PATH },
  timeoutMs: 30_000,
  maxOutputBytes: 65_536,
  signal: never(),
  ...rest,
});

/** Ignores the polite signal, forks, and lets one child leave the process group. */
const stubborn = (pipe: string): string => `
  exec 3>'${pipe}'
  trap '' TERM
  sleep 1000 & sleep 1000 &
  setsid sh -c 'trap "" TERM; echo away >&3; sleep 1000' &
  wait`;

test("stdout and stderr come in the order in which they were written", async () => {
  const result = await runnerWith().run(sh("echo a; echo b >&2; echo c; exit 3"));
  expect(result).toEqual({ end: { kind: "exited", exitCode: 3 }, output: "a\nb\nc\n", omittedBytes: 0 });
});

test("arguments arrive as they are, whatever they hold", async () => {
  const odd = ["$(touch x)", "`id`", "a b", "'\"\\", "*", "-n", "ü\n漢", ""];
  const { output } = await runnerWith().run({ ...sh(""), argv: ["printf", "<%s>", ...odd] });
  expect(output).toBe(odd.map((text) => `<${text}>`).join(""));
});

test("input is given, and a program may leave it unread", async () => {
  expect((await runnerWith().run(sh("cat", { stdin: "ü in" }))).output).toBe("ü in");
  const unread = await runnerWith().run(sh("exit 0", { stdin: "x".repeat(1_000_000) }));
  expect(unread.end).toEqual({ kind: "exited", exitCode: 0 });
  expect((await runnerWith().run(sh("cat; echo end"))).output).toBe("end\n");
});

verifies(["W27"], "the environment is what was written out, and nothing of the daemon's", async () => {
  const { output } = await runnerWith().run(sh("env", { env: { PATH, GIVEN: "yes" } }));
  const names = output
    .trim()
    .split("\n")
    .map((line) => line.replace(/=.*/, ""));
  expect(names).toContain("GIVEN");
  expect(names.filter((name) => !/^(PATH|GIVEN|PWD|OLDPWD|SHLVL|_|BEAMCLAW_CALL)$/.test(name))).toEqual([]);
});

verifies(
  ["W27"],
  "a cancelled program dies with all its descendants, though they ignore the signal",
  async () => {
    const pipe = leash(await temporaryFolder());
    const controller = new AbortController();
    const running = runnerWith().run(sh(stubborn(pipe.path), { signal: controller.signal }));
    await pipe.said;
    controller.abort();
    expect((await running).end).toEqual({ kind: "cancelled" });
    await pipe.gone;
  },
);

verifies(["W27"], "the time limit ends a program that would not end", async () => {
  const pipe = leash(await temporaryFolder());
  const clock = new ManualClock();
  const running = runnerWith(clock).run(sh(stubborn(pipe.path), { timeoutMs: 5_000 }));
  await pipe.said;
  await clock.advance(5_000);
  await clock.advance(400);
  expect((await running).end).toEqual({ kind: "timed_out" });
  await pipe.gone;
  expect(clock.pending).toBe(0);
});

verifies(["W27"], "what a program leaves in the background ends with it", async () => {
  const pipe = leash(await temporaryFolder());
  const script = `exec 3>'${pipe.path}'; sleep 1000 & setsid sleep 1000 & echo done`;
  const result = await runnerWith().run(sh(script));
  expect(result).toMatchObject({ end: { kind: "exited", exitCode: 0 }, output: "done\n" });
  await pipe.gone;
});

verifies(
  ["W27"],
  "what outlived a killed daemon is reaped by the next one, others' processes are not",
  async () => {
    const pipe = leash(await temporaryFolder());
    // A runner whose clock stands still and whose caller is gone: nobody will end the program.
    const running = runnerWith(new ManualClock(), "/home/a/b").run(
      sh(`exec 3>'${pipe.path}'; echo up >&3; sleep 1000`),
    );
    await pipe.said;
    expect(await runnerWith(new ManualClock(), "/home/a").reapLeftovers()).toBe(0);
    expect(await runnerWith(new ManualClock(), "/home/a/b").reapLeftovers()).toBeGreaterThan(0);
    expect((await running).end).toMatchObject({ kind: "killed" });
    await pipe.gone;
  },
);

verifies(["W27"], "output without end is read, counted and mostly dropped", async () => {
  const { output, omittedBytes } = await runnerWith().run(
    sh("head -c 100000000 /dev/zero | tr '\\0' x", { maxOutputBytes: 10_000 }),
  );
  expect(omittedBytes).toBe(100_000_000 - 10_000);
  expect(output).toBe(`${"x".repeat(5000)}\n[… 99990000 bytes left out …]\n${"x".repeat(5000)}`);
});

verifies(["W27"], "a process cannot fill the disk or the memory", async () => {
  const cwd = await temporaryFolder();
  const file = await runnerWith().run(sh("head -c 3000000 /dev/zero > big; wc -c < big", { cwd }));
  expect(Number(file.output.trim().split(/\s+/).at(-1))).toBe(2 ** 20);
  const limits = await runnerWith().run(sh("ulimit -c; ulimit -f; ulimit -d"));
  expect(limits.output.trim().split("\n")).toEqual(["0", "2048", "2097152"]);
});

test("what cannot be started is said, not thrown", async () => {
  const nowhere = await runnerWith().run(sh("true", { cwd: "/does/not/exist" }));
  expect(nowhere.end.kind).toBe("not_started");
  const long = await runnerWith().run(sh("x".repeat(300_000)));
  expect(long.end.kind).toBe("not_started");
  const missing = await runnerWith().run({ ...sh(""), argv: ["no-such-program"] });
  expect(missing).toMatchObject({ end: { kind: "exited", exitCode: 127 } });
  expect(missing.output).toContain("no-such-program");
  const nul = await runnerWith().run(sh("echo \0"));
  expect(nul.end.kind).toBe("not_started");
});

test("an aborted signal starts nothing; a signal keeps no listener", async () => {
  const folder = await temporaryFolder();
  await writeFile(join(folder, "kept"), "");
  const aborted = await runnerWith().run(sh("rm kept", { cwd: folder, signal: AbortSignal.abort() }));
  expect(aborted.end).toEqual({ kind: "cancelled" });
  expect((await runnerWith().run(sh("ls", { cwd: folder }))).output).toBe("kept\n");
  const { signal, added, removed } = countedSignal();
  await runnerWith().run(sh("true", { signal }));
  expect(added()).toBe(removed());
  expect(added()).toBeGreaterThan(0);
});

test("a program killed by a signal is told apart from one that exits", async () => {
  expect((await runnerWith().run(sh("kill -9 $$"))).end).toEqual({ kind: "killed", signal: "SIGKILL" });
});

/** A long-lived signal that counts its listeners. */
function countedSignal() {
  const { signal } = new AbortController();
  let added = 0;
  let removed = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    added++;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    removed++;
    remove(...args);
  };
  return { signal, added: () => added, removed: () => removed };
}
