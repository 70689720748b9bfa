import { accessSync, constants, statSync } from "node:fs";
import { createServer } from "node:net";
import { delimiter, join } from "node:path";
import Database from "better-sqlite3";
import { toError } from "../kernel/errors.ts";
import { formatProblem } from "./config-problem.ts";
import { chooseProvider } from "./config-rules.ts";
import type { Config } from "./config-schema.ts";
import type { InvalidConfig, LoadedConfig } from "./config.ts";
import { type Env, envValue, type Home } from "./home.ts";
import { acquireLock, type LockOwner } from "./lock.ts";

/** One line of `beamclaw doctor`. Only `fail` makes the command fail. */
export interface Finding {
  readonly level: "ok" | "warn" | "fail" | "info";
  /** What was looked at: `node`, `home`, `config` … */
  readonly subject: string;
  /** What was seen and, where it is not well, what to do. */
  readonly text: string;
}

export interface DoctorSubject {
  readonly home: Home;
  readonly env: Env;
  readonly nodeVersion: string;
  readonly loaded: LoadedConfig | InvalidConfig;
}

/** What can be seen without looking into a running daemon. Reads only; starts and repairs nothing. */
export function examineSetup(subject: DoctorSubject): readonly Finding[] {
  return [
    examineNode(subject.nodeVersion),
    ...examineHome(subject.home),
    ...examineConfig(subject.loaded),
    ...examinePrograms(subject.env),
  ];
}

/** Store and port, which only somebody other than a running daemon may try out. */
export async function examineStopped(
  home: Home,
  config: Config | null,
  self: LockOwner,
): Promise<readonly Finding[]> {
  const file = config?.store.path ?? home.database;
  const store = examineDatabase(home, file, self);
  return config === null ? [store] : [store, await examinePort(config.gateway)];
}

const finding = (level: Finding["level"], subject: string, text: string): Finding => ({
  level,
  subject,
  text,
});

function examineNode(version: string): Finding {
  const major = Number(version.replace(/^v/, "").split(".")[0]);
  return major >= 24
    ? finding("ok", "node", version)
    : finding("fail", "node", `${version} is too old; install Node 24 or newer`);
}

function examineHome(home: Home): readonly Finding[] {
  const root = statSync(home.root, { throwIfNoEntry: false });
  if (root === undefined) return [finding("info", "home", `${home.root} will be made by the first start`)];
  if (!root.isDirectory()) return [finding("fail", "home", `${home.root} is no folder`)];
  const findings = [home.root, home.tokenFile, home.database].flatMap(examineMode);
  if (!isAllowed(home.root, constants.W_OK | constants.X_OK)) {
    findings.push(
      finding("fail", "home", `${home.root} is not writable; give it to the user who runs beamclaw`),
    );
  }
  return findings.length > 0 ? findings : [finding("ok", "home", home.root)];
}

function examineMode(path: string): Finding[] {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  return (mode & 0o077) === 0
    ? []
    : [finding("warn", "home", `${path} can be reached by others; run: chmod go-rwx ${path}`)];
}

function isAllowed(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false; // whatever the reason, it cannot be used
  }
}

function examineConfig(loaded: LoadedConfig | InvalidConfig): readonly Finding[] {
  const warnings = loaded.warnings.map((warning) => finding("warn", "config", formatProblem(warning)));
  if (loaded.kind === "invalid") {
    return [
      ...warnings,
      ...loaded.problems.map((problem) => finding("fail", "config", formatProblem(problem))),
    ];
  }
  const { config, secrets } = loaded;
  const chosen = chooseProvider(config, secrets);
  const isDemo = config.providers[chosen.name]?.kind === "demo";
  return [
    ...(warnings.length > 0 ? warnings : [finding("ok", "config", "valid")]),
    ...secrets.remarks().map((remark) => finding("warn", "config", remark)),
    finding(isDemo ? "warn" : "ok", "provider", `${chosen.name}: ${chosen.reason}`),
    ...loaded.off.map(({ path, reason }) => finding("info", path, `off: ${reason}`)),
  ];
}

/** Programs of the system that make tools safer where they are there. */
function examinePrograms(env: Env): readonly Finding[] {
  const folders = (envValue(env, "PATH") ?? "").split(delimiter).filter((folder) => folder !== "");
  const has = (program: string): boolean =>
    folders.some((folder) => isAllowed(join(folder, program), constants.X_OK));
  return [
    has("bwrap")
      ? finding("ok", "bwrap", "found; shell tools run without sight of the home folder")
      : finding(
          "warn",
          "bwrap",
          "not found; shell tools run with your rights. Install the package bubblewrap",
        ),
    has("prlimit")
      ? finding("ok", "prlimit", "found; tools get limits of memory and file size")
      : finding("warn", "prlimit", "not found; tools run without limits of memory. Install util-linux"),
  ];
}

/** Only ever called where no daemon answers; holds the lock while it looks, so that none starts meanwhile. */
function examineDatabase(home: Home, file: string, self: LockOwner): Finding {
  if (statSync(file, { throwIfNoEntry: false }) === undefined) {
    return finding("info", "store", `${file} will be made by the first start`);
  }
  try {
    const attempt = acquireLock(home, self);
    if (attempt.kind === "held") return finding("warn", "store", "locked by a daemon that does not answer");
    using _ = attempt.lock;
    const database = new Database(file, { readonly: true, timeout: 0 });
    try {
      database.prepare("SELECT count(*) FROM sqlite_schema").get();
      return finding("ok", "store", file);
    } finally {
      database.close();
    }
  } catch (error) {
    return finding("fail", "store", `${file} cannot be opened: ${toError(error).message}`);
  }
}

function examinePort({ host, port }: Config["gateway"]): Promise<Finding> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error) => {
      resolve(finding("fail", "port", `${host}:${port} cannot be used (${error.message}); set gateway.port`));
    });
    server.listen({ host, port, exclusive: true }, () => {
      server.close(() => {
        resolve(finding("ok", "port", `${host}:${port} is free`));
      });
    });
  });
}
