/**
 * Runs a command of the shell tools as far apart from the daemon as the machine allows. With bubblewrap the
 * command sees a read-only system, its workspace, and neither the daemon's folders nor its processes. Without
 * it, only working directory, HOME and environment are set; `docs/tools.md` says what that leaves open.
 */
import { access, constants, realpath } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";
import type { ProcessResult, ProcessRunner } from "./process.ts";

export interface ShellOptions {
  readonly runner: ProcessRunner;
  /** `required` refuses to run without bubblewrap, `off` does not look for it. */
  readonly sandbox: "auto" | "required" | "off";
  /** Folders that no command may see: the daemon's home, the folder of its control socket. */
  readonly hidden: readonly string[];
  /** What commands see of the environment, already reduced to the allowed names; HOME is set to the workspace. */
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
}

export type ShellOutcome =
  | { readonly kind: "ran"; readonly result: ProcessResult }
  | { readonly kind: "refused"; readonly message: string };

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const PROBE_TIMEOUT_MS = 5_000;

/**
 * `/run` holds the sockets of the host's services (containers, message bus), through which a command could
 * act outside; name resolution and the programs of some systems live there too and stay visible.
 */
const VISIBLE_IN_RUN = [
  "/run/systemd/resolve",
  "/run/NetworkManager",
  "/run/resolvconf",
  "/run/current-system",
];

export class SandboxedShell {
  readonly #options: ShellOptions;
  /** Path of a bubblewrap that has proven to work here; null where there is none. Asked once, when needed. */
  #bubblewrap: Promise<string | null> | undefined;

  constructor(options: ShellOptions) {
    this.#options = options;
  }

  /** Runs `argv` in `workspace`, which must exist. Never rejects for what the command does. */
  async run(
    argv: readonly [string, ...string[]],
    workspace: string,
    signal: AbortSignal,
  ): Promise<ShellOutcome> {
    const { runner, sandbox, timeoutMs, maxOutputBytes } = this.#options;
    const bubblewrap = await this.#findBubblewrap();
    if (bubblewrap === null && sandbox === "required") {
      return {
        kind: "refused",
        message: "tools.shell.sandbox is `required` and bubblewrap does not work here",
      };
    }
    const wrapped = bubblewrap === null ? argv : await this.#wrap(bubblewrap, argv, workspace);
    const env = this.#environment(workspace);
    const spec = { argv: wrapped, cwd: workspace, env, timeoutMs, maxOutputBytes, signal };
    return { kind: "ran", result: await runner.run(spec) };
  }

  /** Whether commands will run under bubblewrap. */
  async isolates(): Promise<boolean> {
    return (await this.#findBubblewrap()) !== null;
  }

  #environment(workspace: string): Record<string, string> {
    return { PATH: DEFAULT_PATH, LANG: "C.UTF-8", TERM: "dumb", ...this.#options.env, HOME: workspace };
  }

  async #wrap(
    bubblewrap: string,
    argv: readonly string[],
    workspace: string,
  ): Promise<readonly [string, ...string[]]> {
    const hidden = await existing(this.#options.hidden);
    const [place = workspace] = await existing([workspace]); // a missing one fails when the program starts
    return [bubblewrap, ...sandboxFlags(hidden, place), "--", ...argv];
  }

  #findBubblewrap(): Promise<string | null> {
    if (this.#options.sandbox === "off") return Promise.resolve(null);
    this.#bubblewrap ??= this.#probe();
    return this.#bubblewrap;
  }

  /** It may be installed and still be of no use: in containers, or where user namespaces are switched off. */
  async #probe(): Promise<string | null> {
    const program = await findProgram("bwrap", this.#options.env["PATH"] ?? DEFAULT_PATH);
    if (program === null) return null;
    const { end } = await this.#options.runner.run({
      argv: [program, ...sandboxFlags([], "/"), "--", "/bin/sh", "-c", "exit 0"],
      cwd: "/",
      env: { PATH: DEFAULT_PATH },
      timeoutMs: PROBE_TIMEOUT_MS,
      maxOutputBytes: 1024,
      signal: new AbortController().signal, // shared by all callers; none of them may cancel it
    });
    return end.kind === "exited" && end.exitCode === 0 ? program : null;
  }
}

/** Order matters: each line covers what the lines before it made visible. */
function sandboxFlags(hidden: readonly string[], workspace: string): readonly string[] {
  const visible = VISIBLE_IN_RUN.flatMap((path) => ["--ro-bind-try", path, path]);
  const covered = hidden.flatMap((path) => ["--tmpfs", path]);
  const writable = workspace === "/" ? [] : ["--bind", workspace, workspace];
  const system = [
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--tmpfs",
    "/tmp",
    "--tmpfs",
    "/run",
  ];
  // Without its capabilities even root cannot mount anything away or back to writable.
  const powerless = ["--cap-drop", "ALL"];
  const apart = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"];
  const life = ["--die-with-parent", "--new-session", "--chdir", workspace];
  return [...system, ...visible, ...covered, ...writable, ...powerless, ...apart, ...life];
}

async function findProgram(name: string, path: string): Promise<string | null> {
  for (const folder of path.split(delimiter).filter(isAbsolute)) {
    const file = join(folder, name);
    const usable = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return file;
  }
  return null;
}

/** Real paths, as bubblewrap wants them, of those that exist; what does not exist needs no hiding. */
async function existing(folders: readonly string[]): Promise<readonly string[]> {
  const real = await Promise.all(folders.map((folder) => realpath(folder).catch(() => null)));
  return real.filter((folder) => folder !== null);
}
