/** A daemon from its parts to its end: starts the tree, answers signals, and stops in two phases. */
import { Workspaces } from "../agent/workspace.ts";
import { type AgentName, asId } from "../domain/ids.ts";
import { SystemClock } from "../kernel/clock.ts";
import { toError } from "../kernel/errors.ts";
import { Cancelled } from "../kernel/scope.ts";
import { installStrayErrorHandler } from "../kernel/stray-errors.ts";
import { type ExitReport, supervise } from "../kernel/supervisor.ts";
import { ProcessObs } from "../obs/obs.ts";
import { Circuits } from "../providers/circuit-provider.ts";
import { ModelHttp } from "../providers/model-http.ts";
import { adminDeps } from "./admin.ts";
import { type Database, daemonChildren } from "./children.ts";
import type { DaemonOptions } from "./daemon-module.ts";
import { DaemonParts } from "./daemon-parts.ts";
import { gauges } from "./gauges.ts";
import type { LockOwner } from "./lock.ts";
import { openLogSink } from "./log-sink.ts";
import { ownerToken } from "./owner-token.ts";
import { buildRuntime } from "./runtime.ts";
import { Shutdown } from "./shutdown.ts";
import { tree } from "./tree.ts";

/** Something threw that belongs to no child: the process cannot be trusted any more (sysexits.h: EX_SOFTWARE). */
const exitSoftware = 70;

export async function serve(options: DaemonOptions, self: LockOwner, database: Database): Promise<number> {
  const parts = await assemble(options, self);
  parts.obs.metrics.observe(gauges(parts));
  const shutdown = new Shutdown(parts);
  let exitCode = 0;
  let isReady = false;
  let failure: Error | null = null;
  using _stray = installStrayErrorHandler(process, (thrown) => {
    const { message, stack = "" } = toError(thrown);
    parts.obs.events.defect({ where: "process", error: message, stack });
    exitCode = exitSoftware;
    shutdown.begin();
  });
  using _signals = onSignals({
    stop: () => shutdown.begin(),
    reload: () => void admin.reload(),
  });
  const admin = adminDeps({ parts, options, shutdown });
  const report = (exit: ExitReport): void => {
    parts.obs.events.childExit(exit);
    // Whatever fails before the daemon has ever served is for a person to mend, not for a restart.
    if (isReady) return;
    failure ??= new Error(exit.error?.message ?? `${exit.child} ended`);
    shutdown.abort(new Cancelled("shutdown", "the start failed"));
  };
  const root = supervise(tree(daemonChildren({ parts, admin, database }), { clock: parts.clock, report }));
  const ready = (): void => {
    isReady = true;
    options.onReady(greeting(parts));
  };
  try {
    await root({ signal: shutdown.signal, ready });
  } catch (thrown) {
    failure ??= toError(thrown);
  }
  await parts.obs.log.close();
  if (failure !== null) {
    options.stderr.write(`beamclaw: ${parts.runtime.scrubber.scrubText(describe(failure))}\n`);
    return exitCode === 0 ? 1 : exitCode;
  }
  return exitCode;
}

async function assemble(
  { home, installation, env, loaded, detached, stdout }: DaemonOptions,
  { version, startedAt }: LockOwner,
): Promise<DaemonParts> {
  const clock = new SystemClock();
  const workspaces = new Workspaces({
    root: home.agents,
    templates: installation.agentTemplates,
    defaultAgent: asId<AgentName>(loaded.config.agents.default),
  });
  await workspaces.prepare();
  const shared = { clock, http: new ModelHttp(clock), circuits: new Circuits(clock), random: Math.random };
  const build = (next: typeof loaded) => buildRuntime({ loaded: next, home, env, workspaces, shared });
  const runtime = build(loaded);
  const { logLevel, logFile } = loaded.config.obs;
  const obs = new ProcessObs({
    level: logLevel,
    scrubber: runtime.scrubber,
    sink: await openLogSink(logFile ?? (detached ? home.logFile : null), stdout),
    now: () => clock.now(),
  });
  const { secret } = ownerToken(home);
  return new DaemonParts({
    home,
    installation,
    clock,
    obs,
    workspaces,
    version,
    startedAt,
    ownerSecret: secret,
    runtime,
    build,
  });
}

function greeting(parts: DaemonParts) {
  const { chosen, loaded } = parts.runtime;
  const isDemo = loaded.config.providers[chosen.name]?.kind === "demo";
  return { url: parts.http.get().url, provider: { ...chosen, isDemo } };
}

function onSignals(react: { readonly stop: () => void; readonly reload: () => void }): Disposable {
  const { stop, reload } = react;
  process.on("SIGTERM", stop).on("SIGINT", stop).on("SIGHUP", reload);
  return {
    [Symbol.dispose]() {
      process.off("SIGTERM", stop).off("SIGINT", stop).off("SIGHUP", reload);
    },
  };
}

/** What went wrong, in one line for a person; the log has the rest. */
function describe(error: Error): string {
  const cause = error.cause instanceof Error ? describe(error.cause) : error.message;
  if (cause.includes("EADDRINUSE"))
    return `${cause}; another program uses the port: set gateway.port or BEAMCLAW_PORT`;
  return cause;
}
