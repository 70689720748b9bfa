import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { Readable } from "node:stream";
import type { DaemonReady } from "../app/daemon-module.ts";
import { BeamclawError } from "../domain/error-catalogue.ts";
import type { Clock } from "../kernel/clock.ts";
import { greet } from "./greeting.ts";
import type { Invocation } from "./invocation.ts";
import { readTail } from "./log-tail.ts";
import { readReady } from "./ready-pipe.ts";

/** A start that recovers much work takes a while; a start that hangs must end. */
const LONGEST_START_MS = 60_000;
/** Lines of the daemon's own words that a failed start shows. */
const SHOWN_LINES = 20;

type Start =
  | { readonly kind: "ready"; readonly ready: DaemonReady }
  | { readonly kind: "ended"; readonly code: number }
  | { readonly kind: "late" };

/** Starts the daemon in a process of its own and waits until it answers. The home is prepared. */
export async function startDetached(invocation: Invocation): Promise<number> {
  const { client, home, terminal, surroundings } = invocation;
  if (await client.isRunning()) throw new BeamclawError("daemon_running", "the daemon is running already");
  const child = spawnDaemon(invocation);
  const start = await untilStarted(child, surroundings.clock);
  if (start.kind === "ready") {
    child.unref();
    greet(terminal, home, start.ready);
    return 0;
  }
  if (start.kind === "late") child.kill("SIGTERM");
  const what = start.kind === "late" ? `was not ready after ${LONGEST_START_MS / 1000} s` : "ended at once";
  terminal.note(`beamclaw: the daemon ${what}. It said:`);
  for (const line of readTail(home.consoleFile, SHOWN_LINES)) terminal.note(`  ${line}`);
  terminal.note(`More may be in ${home.logFile}.`);
  return start.kind === "ended" ? start.code || 1 : 1;
}

function spawnDaemon(invocation: Invocation): ChildProcess {
  const { home, surroundings } = invocation;
  const config = invocation.text("config");
  const named = config === null ? [] : ["--config", invocation.path(config)];
  const output = openSync(home.consoleFile, "w", 0o600);
  try {
    return spawn(
      process.execPath,
      [surroundings.installation.launcher, "start", "--foreground", "--ready-fd", "3", ...named],
      {
        cwd: home.root, // no mount or folder of the caller's is held
        detached: true,
        env: { ...surroundings.env },
        stdio: ["ignore", output, output, "pipe"],
      },
    );
  } finally {
    closeSync(output);
  }
}

function untilStarted(child: ChildProcess, clock: Clock): Promise<Start> {
  return new Promise((resolve, reject) => {
    const pipe = child.stdio[3];
    const settle = (start: Start): void => {
      deadline.cancel();
      if (pipe instanceof Readable) pipe.destroy();
      resolve(start);
    };
    const deadline = clock.setTimer(LONGEST_START_MS, () => {
      settle({ kind: "late" });
    });
    const onLine = (ready: DaemonReady | null): void => {
      if (ready !== null) settle({ kind: "ready", ready });
    };
    child.once("error", reject);
    child.once("exit", (code) => {
      settle({ kind: "ended", code: code ?? 1 });
    });
    if (pipe instanceof Readable) readReady(pipe).then(onLine, reject);
  });
}
