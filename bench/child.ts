/** A process that the benchmark started, and will end. */
import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { get } from "node:http";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Where its output goes. */
  readonly logFile: string;
}

const STOP_GRACE_MS = 10_000;

export class Child implements AsyncDisposable {
  readonly pid: number;
  readonly #process: ChildProcess;
  readonly #exit: Promise<number | null>;

  constructor(command: Command) {
    const log = openSync(command.logFile, "a");
    this.#process = spawn(command.program, command.args, {
      stdio: ["ignore", log, log],
      env: { PATH: process.env.PATH, ...command.env },
    });
    closeSync(log);
    // An interrupted benchmark leaves nothing running; a finished one has stopped its children before.
    const onExit = (): void => this.signal("SIGKILL");
    process.once("exit", onExit);
    this.#exit = new Promise((resolve) => {
      const ended = (code: number | null): void => {
        process.off("exit", onExit);
        resolve(code);
      };
      this.#process.once("exit", ended).once("error", () => ended(null));
    });
    this.pid = this.#process.pid ?? 0;
  }

  get running(): boolean {
    return this.pid !== 0 && this.#process.exitCode === null && this.#process.signalCode === null;
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name);
  }

  /** Asks politely, then kills. Resolves when the process is gone. */
  async stop(): Promise<void> {
    if (!this.running) return;
    this.signal("SIGTERM");
    using timer = deadline(() => this.signal("SIGKILL"), STOP_GRACE_MS);
    void timer;
    await this.#exit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** Resolves with the exit code, `null` for a death by signal. */
  get exit(): Promise<number | null> {
    return this.#exit;
  }
}

function deadline(act: () => void, ms: number): Disposable {
  const timer = setTimeout(act, ms);
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}

/** A loopback port that nobody holds now. */
export function freePort(): Promise<number> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", reject).listen(0, "127.0.0.1", () => {
      const address = server.address();
      const port = address === null || typeof address === "string" ? 0 : address.port;
      server.close(() => resolve(port));
    });
  });
}

/** Asks `/health` every `everyMs` until it answers 200. Rejects when the child dies first, or after `withinMs`. */
export async function untilHealthy(
  child: Child,
  port: number,
  { everyMs = 5, withinMs = 30_000 } = {},
): Promise<void> {
  const end = performance.now() + withinMs;
  while (!(await answers(port))) {
    if (!child.running) throw new Error("the process ended before it was healthy");
    if (performance.now() > end) throw new Error(`not healthy within ${withinMs} ms`);
    await sleep(everyMs);
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { host: "127.0.0.1", port, path: "/health", agent: false, timeout: 2_000 };
    const request = get(options, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on("timeout", () => request.destroy()).on("error", () => resolve(false));
  });
}
