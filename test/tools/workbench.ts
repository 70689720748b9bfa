import { execFileSync } from "node:child_process";
import { createReadStream } from "node:fs";
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { onTestFinished } from "vitest";
import { type Clock, SystemClock } from "../../src/kernel/clock.ts";
import { ProcessRunner } from "../../src/tools/process.ts";
import type { PreparedCall, Tool, ToolContext, ToolResult } from "../../src/tools/tool.ts";

export const clock = new SystemClock();
export const never = (): AbortSignal => new AbortController().signal;

/** A folder that is gone when the test has ended. */
export async function temporaryFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "beamclaw-tools-")));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A workspace inside a home folder, as the daemon lays them out. */
export async function temporaryHome(): Promise<{ readonly home: string; readonly workspace: string }> {
  const home = await temporaryFolder();
  const workspace = join(home, "agents", "default");
  await mkdir(workspace, { recursive: true });
  return { home, workspace };
}

export const contextIn = (workspace: string, signal: AbortSignal = never()): ToolContext => ({
  workspace,
  agent: "default",
  sessionId: "session",
  runId: "run",
  callId: "call",
  signal,
});

/** Prepares a call that has to be valid. */
export function prepare(tool: Tool, args: unknown): PreparedCall {
  const prepared = tool.prepare(JSON.stringify(args));
  if (prepared.kind === "invalid") throw new Error(prepared.message);
  return prepared;
}

export const call = (tool: Tool, args: unknown, context: ToolContext): Promise<ToolResult> =>
  prepare(tool, args).run(context);

/** The message of a call whose arguments have to be wrong. */
export function refusal(tool: Tool, json: string): string {
  const prepared = tool.prepare(json);
  if (prepared.kind === "prepared") throw new Error("the arguments were accepted");
  return prepared.message;
}

export const runnerWith = (time: Clock = clock, owner = "test"): ProcessRunner =>
  new ProcessRunner({ clock: time, owner, limits: { memoryBytes: 2 ** 31, fileBytes: 2 ** 20 } });

/**
 * A named pipe that a script opens for writing and its children inherit: `said` resolves with the first words,
 * `gone` once nobody is left who holds it. The kernel tells, no waiting is guessed.
 */
export function leash(folder: string): {
  readonly path: string;
  readonly said: Promise<string>;
  readonly gone: Promise<void>;
} {
  const path = join(folder, "leash");
  execFileSync("mkfifo", [path]);
  const stream: Readable = createReadStream(path, "utf8");
  const said = new Promise<string>((resolve) => stream.once("data", (text) => resolve(String(text))));
  const gone = new Promise<void>((resolve) => stream.once("end", resolve));
  return { path, said, gone };
}
