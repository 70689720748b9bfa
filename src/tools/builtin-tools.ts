import type { Clock } from "../kernel/clock.ts";
import { curlTool } from "./curl-tool.ts";
import { Egress, type Resolve } from "./egress.ts";
import { deleteFileTool, readFileTool, writeFileTool } from "./file-tools.ts";
import { jqTool } from "./jq-tool.ts";
import { FileRoots } from "./paths.ts";
import { ProcessRunner } from "./process.ts";
import { SandboxedShell } from "./sandboxed-shell.ts";
import { bashTool, terminalTool } from "./shell-tools.ts";
import type { Tool } from "./tool.ts";
import type { ToolConfig } from "./tool-config.ts";
import { webSearchTool } from "./web-search-tool.ts";

export interface ShellDeps {
  /** From `processRunner`, so that the daemon can reap with the same one. */
  readonly runner: ProcessRunner;
  /** The daemon's environment; only names that the configuration lists are taken from it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** BEAMCLAW_HOME and, where it lies elsewhere, the folder of the control socket. */
  readonly hidden: readonly string[];
}

export interface BuiltinToolDeps extends ShellDeps {
  readonly clock: Clock;
  /** What `tools.webSearch.apiKey` refers to; null where that is unset. */
  readonly webSearchKey: string | null;
  /** The system's resolver unless given. */
  readonly resolve?: Resolve;
}

const HTTP_TIMEOUT_MS = 40_000;
const MAX_HTTP_BODY_BYTES = 262_144;
const JQ_TIMEOUT_MS = 10_000;
const MEBIBYTE = 1024 ** 2;

/** `owner` tells this daemon's processes from another's, across restarts: its home folder, for instance. */
export function processRunner(config: ToolConfig, clock: Clock, owner: string): ProcessRunner {
  const limits = {
    memoryBytes: config.shell.memoryMegabytes * MEBIBYTE,
    fileBytes: config.shell.fileMegabytes * MEBIBYTE,
  };
  return new ProcessRunner({ clock, owner, limits });
}

/** All built-in tools, in the order in which models see them. */
export function builtinTools(config: ToolConfig, deps: BuiltinToolDeps): readonly Tool[] {
  const roots = new FileRoots({ roots: config.files.roots, hidden: deps.hidden });
  const shellTimeoutMs = config.shell.timeoutSeconds * 1000;
  const shell = sandboxedShell(config, deps);
  return [
    terminalTool(shell, shellTimeoutMs),
    bashTool(shell, shellTimeoutMs),
    curlTool(egressOf(config.http, deps), new Map(definedEntries(deps.env, config.http.expandEnv))),
    jqTool({ clock: deps.clock, timeoutMs: JQ_TIMEOUT_MS }),
    readFileTool(roots),
    writeFileTool(roots),
    deleteFileTool(roots),
    webSearchTool({
      egress: searchEgress(config.webSearch.baseUrl, deps),
      baseUrl: config.webSearch.baseUrl,
      apiKey: deps.webSearchKey,
      maxResults: config.webSearch.maxResults,
    }),
  ];
}

/** The shell behind `terminal` and `bash`; `isolates` says whether it can hide the daemon from commands. */
export function sandboxedShell(config: ToolConfig, deps: ShellDeps): SandboxedShell {
  return new SandboxedShell({
    runner: deps.runner,
    sandbox: config.shell.sandbox,
    hidden: deps.hidden,
    env: Object.fromEntries(definedEntries(deps.env, config.shell.env)),
    timeoutMs: config.shell.timeoutSeconds * 1000,
    maxOutputBytes: config.shell.maxOutputBytes,
  });
}

function egressOf(policy: ToolConfig["http"], deps: BuiltinToolDeps): Egress {
  return new Egress({
    policy,
    clock: deps.clock,
    timeoutMs: HTTP_TIMEOUT_MS,
    maxBodyBytes: MAX_HTTP_BODY_BYTES,
    ...(deps.resolve !== undefined && { resolve: deps.resolve }),
  });
}

/** The operator has named this service, so it may be anywhere; the model has no say in where it is. */
function searchEgress(baseUrl: string, deps: BuiltinToolDeps): Egress {
  const url = new URL(baseUrl);
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  return egressOf(
    { allow: [`${url.hostname}:${port}`], deny: [], ports: [], allowPrivate: true, expandEnv: [] },
    deps,
  );
}

function definedEntries(
  env: Readonly<Record<string, string | undefined>>,
  names: readonly string[],
): readonly (readonly [string, string])[] {
  return names.flatMap((name) => {
    const value = env[name];
    return value === undefined || value === "" ? [] : [[name, value] as const];
  });
}
