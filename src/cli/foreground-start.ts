import type { DaemonOptions } from "../app/daemon-module.ts";
import { errorCatalogue } from "../domain/error-catalogue.ts";
import { loadedOrTold } from "./config-commands.ts";
import { greet } from "./greeting.ts";
import { Invocation, type Surroundings } from "./invocation.ts";
import { announceReady } from "./ready-pipe.ts";

/** `start --foreground`: the daemon in this process. */
export async function startHere(invocation: Invocation): Promise<number> {
  const { home, surroundings, terminal } = invocation;
  const fd = invocation.number("readyFd", 3, 1_024);
  const { prepareDaemon, runDaemon } = await surroundings.loadDaemon();
  await using prepared = prepareDaemon(); // works on while the configuration is read
  const loaded = loadedOrTold(invocation);
  if (loaded === null) return errorCatalogue.configuration.exit;
  home.prepare();
  const options: DaemonOptions = {
    home,
    installation: surroundings.installation,
    env: surroundings.env,
    source: invocation.configSource(),
    loaded,
    detached: fd !== null,
    stdout: terminal.streams.stdout,
    stderr: terminal.streams.stderr,
    onReady: (ready) => {
      if (fd === null) greet(terminal, home, ready);
      else announceReady(fd, ready);
    },
  };
  return await runDaemon(options, prepared);
}

/**
 * The start that services, containers and `start` itself ask for, without the parser of the command line and all
 * other commands, which take as long to load as a fifth of a start. Null for any other line: the program decides.
 */
export function plainStart(surroundings: Surroundings, argv: readonly string[]): Invocation | null {
  const [command, flag, ...rest] = argv;
  if (command !== "start" || flag !== "--foreground") return null;
  const options: Record<string, unknown> = { foreground: true };
  for (let at = 0; at < rest.length; at += 2) {
    const [name, value] = rest.slice(at, at + 2);
    const key = name === "--ready-fd" ? "readyFd" : name === "--config" ? "config" : null;
    if (key === null || value === undefined || value.startsWith("-")) return null;
    options[key] = value;
  }
  return new Invocation(surroundings, [], options);
}
