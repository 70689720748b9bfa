import { Installation } from "../app/installation.ts";
import type { DaemonModule } from "../app/daemon-module.ts";
import type { Env } from "../app/home.ts";
import { BeamclawError } from "../domain/error-catalogue.ts";
import { SystemClock } from "../kernel/clock.ts";
import { toError } from "../kernel/errors.ts";
import type { Surroundings } from "./invocation.ts";
import { type Streams, Terminal } from "./terminal.ts";

/** The process as `bin/` sees it. */
export interface Process extends Streams {
  /** Without the program's own name. */
  readonly argv: readonly string[];
  readonly env: Env;
  readonly cwd: string;
  readonly loadDaemon: () => Promise<DaemonModule>;
}

/** Runs the command line and returns the exit code. Never rejects and never ends the process. */
export async function main(process: Process): Promise<number> {
  const terminal = new Terminal(process);
  try {
    const installation = new Installation();
    const { argv, env, cwd, loadDaemon } = process;
    if (argv.length === 1 && asksVersion(argv[0])) {
      terminal.line(installation.readVersion());
      return 0;
    }
    const surroundings: Surroundings = {
      env,
      cwd,
      terminal,
      clock: new SystemClock(),
      installation,
      loadDaemon,
    };
    if (argv[0] === "start") {
      const { plainStart, startHere } = await import("./foreground-start.ts");
      const plain = plainStart(surroundings, argv);
      if (plain !== null) return await startHere(plain);
    }
    // Loaded late: the version, which scripts ask often, needs none of it.
    const { runProgram } = await import("./program.ts");
    return await runProgram(surroundings, argv);
  } catch (thrown) {
    return explain(thrown, terminal);
  }
}

const asksVersion = (argument: string | undefined): boolean =>
  argument === "version" || argument === "--version" || argument === "-V";

function explain(thrown: unknown, terminal: Terminal): number {
  const error = toError(thrown);
  if (error instanceof BeamclawError) {
    // What the daemon refused already ends with its cure.
    const text = error.message.replace(/\.$/, "");
    const { cure } = error.entry;
    terminal.note(error.message.includes(cure) ? `beamclaw: ${error.message}` : `beamclaw: ${text}. ${cure}`);
    return error.entry.exit;
  }
  terminal.note(`beamclaw: ${error.message}`);
  return 1;
}
