/** `terminal` and `bash`: a whole shell, therefore asked about every time and never allowed for good. */
import { z } from "zod";
import { lazily } from "../kernel/lazily.ts";
import type { Effect } from "../domain/autonomy.ts";
import { Unreachable } from "../kernel/errors.ts";
import { defineTool, failed } from "./define-tool.ts";
import { formatBytes, fromOutside } from "./model-text.ts";
import type { ProcessEnd, ProcessResult } from "./process.ts";
import type { SandboxedShell, ShellOutcome } from "./sandboxed-shell.ts";
import type { Tool, ToolContext, ToolResult } from "./tool.ts";

/** One argument of a program may have 128 KiB on Linux, its final NUL byte included. */
const MAX_SCRIPT_BYTES = 100_000;

/** Runs the script under bash, or under sh where there is no bash; the text is an argument, never part of this. */
const BASH_OR_SH = 'if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; fi; exec sh -c "$1"';

const shellText = lazily(() =>
  z
    .string()
    .min(1)
    .refine((text) => !text.includes("\0"), "must not contain NUL characters")
    .refine(
      (text) => Buffer.byteLength(text) <= MAX_SCRIPT_BYTES,
      `must not exceed ${formatBytes(MAX_SCRIPT_BYTES)}; write it to a file with write_file and run the file`,
    ),
);

export function terminalTool(shell: SandboxedShell, timeoutMs: number): Tool {
  return defineTool({
    name: "terminal",
    description: `Run one shell command in the workspace. Ends with the command; no background processes; ${timeoutMs / 1000} s at most.`,
    input: z.strictObject({ command: shellText().describe("The command line, for /bin/sh") }),
    ...everyTimeAsked,
    summary: ({ command }) => command,
    run: ({ command }, context) => runShell(shell, ["/bin/sh", "-c", command], context, timeoutMs),
  });
}

export function bashTool(shell: SandboxedShell, timeoutMs: number): Tool {
  return defineTool({
    name: "bash",
    description: `Run a bash script in the workspace. Ends with the script; no background processes; ${timeoutMs / 1000} s at most.`,
    input: z.strictObject({ script: shellText().describe("The text of the script") }),
    aliases: { command: "script" },
    ...everyTimeAsked,
    summary: ({ script }) => script,
    run: ({ script }, context) =>
      runShell(shell, ["/bin/sh", "-c", BASH_OR_SH, "sh", script], context, timeoutMs),
  });
}

const everyTimeAsked = {
  minAutonomy: "supervised",
  leastEffect: "external",
  effect: (): Effect => "external",
  pattern: () => null,
} as const;

async function runShell(
  shell: SandboxedShell,
  argv: readonly [string, ...string[]],
  context: ToolContext,
  timeoutMs: number,
): Promise<ToolResult> {
  const outcome: ShellOutcome = await shell.run(argv, context.workspace, context.signal);
  if (outcome.kind === "refused") return failed(`Not run: ${outcome.message}.`);
  return describeResult(outcome.result, timeoutMs);
}

function describeResult({ end, output, omittedBytes }: ProcessResult, timeoutMs: number): ToolResult {
  const ok = end.kind === "exited" && end.exitCode === 0;
  const cut = omittedBytes === 0 ? "" : ` ${formatBytes(omittedBytes)} of output left out in the middle.`;
  const body = output === "" ? "(no output)" : fromOutside("command output", output);
  return { ok, text: `${describeEnd(end, timeoutMs)}${cut}\n${body}` };
}

function describeEnd(end: ProcessEnd, timeoutMs: number): string {
  switch (end.kind) {
    case "exited":
      return `Exit code ${end.exitCode}.`;
    case "killed":
      return `Killed by ${end.signal}.`;
    case "timed_out":
      return `Stopped after ${timeoutMs / 1000} s; it may have done part of its work. Split the work, or use a shorter command.`;
    case "cancelled":
      return "Cancelled; it may have done part of its work.";
    case "not_started":
      return `Could not be started: ${end.message}.`;
    default:
      throw new Unreachable(end);
  }
}
