/** The built daemon as a real process in a home of its own, for tests that look at it from outside. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

export interface DaemonProcessOptions {
  /** Text of `config.yaml`; the port is always a free one. */
  readonly config?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Start again in the home of a former daemon. */
  readonly home?: string;
}

type AuthorizedRequest = Omit<RequestInit, "headers"> & {
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

export class DaemonProcess implements AsyncDisposable {
  readonly home: string;
  readonly url: string;
  readonly token: string;
  readonly child: ChildProcess;
  /** Everything it has written to its standard streams. */
  readonly output: string[];
  readonly #ownsHome: boolean;

  private constructor(parts: {
    readonly home: string;
    readonly url: string;
    readonly child: ChildProcess;
    readonly output: string[];
    readonly ownsHome: boolean;
  }) {
    this.home = parts.home;
    this.url = parts.url;
    this.child = parts.child;
    this.output = parts.output;
    this.#ownsHome = parts.ownsHome;
    this.token = readFileSync(join(parts.home, "token"), "utf8").trim();
  }

  /** Resolves when it answers. Rejects with its output if it ends before. */
  static async start(options: DaemonProcessOptions = {}): Promise<DaemonProcess> {
    const home = options.home ?? mkdtempSync(join(tmpdir(), "beamclaw-daemon-"));
    if (options.config !== undefined) writeFileSync(join(home, "config.yaml"), options.config);
    const child = spawn(process.execPath, [join(root, "bin", "beamclaw"), "start", "--foreground"], {
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: home,
        BEAMCLAW_HOME: home,
        BEAMCLAW_PORT: "0",
        ...options.env,
      },
      stdio: ["ignore", "pipe", "pipe"],
      cwd: "/",
    });
    const output: string[] = [];
    const url = await announced(child, output);
    return new DaemonProcess({ home, url, child, output, ownsHome: options.home === undefined });
  }

  /** A request with the owner's token. */
  request(path: string, init: AuthorizedRequest = {}): Promise<Response> {
    const { token = this.token, headers, ...rest } = init;
    return fetch(`${this.url}${path}`, {
      ...rest,
      headers: { authorization: `Bearer ${token}`, ...headers },
    });
  }

  /** Runs the command line against this daemon's home. */
  async cli(
    ...args: readonly string[]
  ): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
    const child = spawn(process.execPath, [join(root, "bin", "beamclaw"), ...args], {
      env: { PATH: process.env["PATH"] ?? "", HOME: this.home, BEAMCLAW_HOME: this.home },
      stdio: ["ignore", "pipe", "pipe"],
      cwd: "/",
    });
    let out = "";
    let err = "";
    child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
    const [code] = await once(child, "close");
    return { code: Number(code), out, err };
  }

  /** `SIGKILL`: nothing is said, nothing is flushed. */
  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill("SIGKILL");
    await once(this.child, "exit");
  }

  /** Asks it to stop and waits; resolves with its exit code. */
  async stop(): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill("SIGTERM");
      await once(this.child, "exit");
    }
    return this.child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    if (this.#ownsHome) rmSync(this.home, { recursive: true, force: true });
  }
}

/** Whether the program is built; system tests skip with a reason where it is not. */
export const isBuilt = existsSync(join(root, "dist", "daemon.js"));

async function announced(child: ChildProcess, output: string[]): Promise<string> {
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("the daemon's streams are not piped");
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  // The log goes to the one, the greeting to the other.
  for (const input of [stdout, stderr]) {
    createInterface({ input }).on("line", (line) => {
      output.push(line);
      const url = /\bhttp:\/\/\S+/.exec(line)?.[0];
      if (url !== undefined) resolve(url);
    });
  }
  child.once("exit", (code) => reject(new Error(`the daemon ended with ${code}:\n${output.join("\n")}`)));
  return promise;
}
