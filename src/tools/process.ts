/**
 * The only place of the daemon that starts programs for tools. A program gets an argument vector (never a
 * shell text that we put together), an environment that was written out for it, a process group of its own
 * and limits; when its call ends, for whatever reason, nothing of it is left.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createHash, randomUUID } from "node:crypto";
import type { Clock } from "../kernel/clock.ts";
import { toError } from "../kernel/errors.ts";
import { killMarked, MARK_VARIABLE } from "./marked-processes.ts";
import { OutputBuffer } from "./output-buffer.ts";

export interface ProcessSpec {
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  /** The whole environment; nothing of the daemon's own is added but the call's mark. */
  readonly env: Readonly<Record<string, string>>;
  /** Text for standard input; empty input unless given. */
  readonly stdin?: string;
  readonly timeoutMs: number;
  /** Bytes kept of stdout and stderr together, half from the start, half from the end; the rest is read and dropped. */
  readonly maxOutputBytes: number;
  readonly signal: AbortSignal;
}

export type ProcessEnd =
  | { readonly kind: "exited"; readonly exitCode: number }
  | { readonly kind: "killed"; readonly signal: string }
  | { readonly kind: "timed_out" }
  | { readonly kind: "cancelled" }
  /** The folder is missing, the arguments are too long, the system has no process left. */
  | { readonly kind: "not_started"; readonly message: string };

export interface ProcessResult {
  readonly end: ProcessEnd;
  /** stdout and stderr in the order in which they were written. */
  readonly output: string;
  readonly omittedBytes: number;
}

export interface ProcessLimits {
  /** Private memory of one process, bytes (RLIMIT_DATA). */
  readonly memoryBytes: number;
  /** Size of a file that a process may write, bytes. */
  readonly fileBytes: number;
}

/** Between the polite signal and SIGKILL; with the rest of the work it must stay under a second. */
const TERM_GRACE_MS = 400;
/** A process that SIGKILL does not end (stuck in the kernel) is given up after this. */
const KILL_GRACE_MS = 300;
/** For output that is still in the pipe when the program has ended. */
const DRAIN_MS = 200;

/**
 * Joins stderr to stdout in one pipe, which keeps their order, and sets the limits, as far as the system has
 * them. The program and its arguments are positional parameters: no text is put together here.
 */
const LAUNCH = `exec 2>&1
{ ulimit -c 0; ulimit -d "$1"; ulimit -f "$2"; } 2>/dev/null
shift 2
exec "$@"`;

type Stop = "timed_out" | "cancelled";

export class ProcessRunner {
  readonly #clock: Clock;
  readonly #owner: string;
  readonly #limits: ProcessLimits;

  /** `owner` marks this daemon's processes: the same text after a restart, another one in another daemon. */
  constructor(options: { readonly clock: Clock; readonly owner: string; readonly limits: ProcessLimits }) {
    this.#clock = options.clock;
    // Of fixed length, so that no owner's mark begins with another's.
    this.#owner = createHash("sha256").update(options.owner).digest("hex").slice(0, 16);
    this.#limits = options.limits;
  }

  /** Never rejects. Resolves when the program and its descendants are gone, at most a second after an abort. */
  async run(spec: ProcessSpec): Promise<ProcessResult> {
    if (spec.signal.aborted) return { end: { kind: "cancelled" }, output: "", omittedBytes: 0 };
    const mark = `${this.#owner}/${randomUUID()}`;
    const child = this.#spawn(spec, mark);
    if (child instanceof Error) return notStarted(child);
    const output = new OutputBuffer(spec.maxOutputBytes);
    child.stdout?.on("data", (chunk: Buffer) => output.push(chunk));
    const drained = child.stdout === null ? null : once(child.stdout, "close");
    feed(child, spec.stdin);
    const end = await this.#ended(child, spec);
    if (end.kind !== "not_started") await killMarked(mark);
    const giveUp = this.#clock.setTimer(DRAIN_MS, () => letGo(child));
    await drained;
    giveUp.cancel();
    return { end, output: output.text(), omittedBytes: output.omitted };
  }

  /** Ends what a former daemon of the same owner left running; returns how many processes that were. */
  reapLeftovers(): Promise<number> {
    return killMarked(`${this.#owner}/`);
  }

  #spawn(spec: ProcessSpec, mark: string): ChildProcess | Error {
    const kibibytes = String(Math.floor(this.#limits.memoryBytes / 1024));
    const blocks = String(Math.floor(this.#limits.fileBytes / 512)); // POSIX: ulimit -f counts 512 bytes
    try {
      return spawn("/bin/sh", ["-c", LAUNCH, "sh", kibibytes, blocks, ...spec.argv], {
        cwd: spec.cwd,
        env: { ...spec.env, [MARK_VARIABLE]: mark },
        detached: true, // a session and process group of its own, so that one signal reaches all of it
        stdio: [spec.stdin === undefined ? "ignore" : "pipe", "pipe", "ignore"],
      });
    } catch (thrown) {
      return toError(thrown); // such as a NUL byte in an argument
    }
  }

  /** Waits for the program's end and sees to it: by itself, by the time limit or by the caller's signal. */
  #ended(child: ChildProcess, spec: ProcessSpec): Promise<ProcessEnd> {
    return new Promise((resolve) => {
      let stopped: Stop | null = null;
      let escalation = this.#clock.setTimer(spec.timeoutMs, () => stop("timed_out"));
      const onAbort = (): void => stop("cancelled");
      const finish = (end: ProcessEnd): void => {
        escalation.cancel();
        spec.signal.removeEventListener("abort", onAbort);
        killGroup(child, "SIGKILL"); // whoever the program left behind in its group
        resolve(end);
      };
      const stop = (why: Stop): void => {
        if (stopped !== null) return;
        stopped = why;
        escalation.cancel();
        killGroup(child, "SIGTERM");
        escalation = this.#clock.setTimer(TERM_GRACE_MS, () => {
          killGroup(child, "SIGKILL");
          escalation = this.#clock.setTimer(KILL_GRACE_MS, () => finish({ kind: why }));
        });
      };
      child.once("error", (error) => finish(notStarted(error).end));
      child.once("exit", (code, signal) => finish(endOf(stopped, code, signal)));
      spec.signal.addEventListener("abort", onAbort, { once: true });
    });
  }
}

function endOf(stopped: Stop | null, code: number | null, signal: NodeJS.Signals | null): ProcessEnd {
  if (stopped !== null) return { kind: stopped };
  return code === null ? { kind: "killed", signal: signal ?? "unknown" } : { kind: "exited", exitCode: code };
}

function notStarted(error: Error): ProcessResult {
  return { end: { kind: "not_started", message: error.message }, output: "", omittedBytes: 0 };
}

/** A program may end without reading its input; that is its right. */
function feed(child: ChildProcess, stdin: string | undefined): void {
  child.stdin?.on("error", () => child.stdin?.destroy());
  child.stdin?.end(stdin ?? "");
}

/** Somebody out of reach keeps the other end of the pipe open; what was read until now has to do. */
function letGo(child: ChildProcess): void {
  child.stdout?.destroy();
  child.stdin?.destroy();
  child.unref();
}

function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // the whole group has ended
  }
}
