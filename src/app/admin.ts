/** What the administration routes need of the daemon, filled in. */
import type { RunState } from "../domain/run.ts";
import { examineSetup } from "./doctor.ts";
import type { DaemonStatus, ReloadOutcome } from "./admin-objects.ts";
import type { AdminDeps } from "./admin-routes.ts";
import { inForce, reloadable } from "./config-reload.ts";
import { loadConfig } from "./config.ts";
import type { DaemonOptions } from "./daemon-module.ts";
import type { DaemonParts } from "./daemon-parts.ts";
import type { Shutdown } from "./shutdown.ts";

export interface AdminOptions {
  readonly parts: DaemonParts;
  readonly options: DaemonOptions;
  readonly shutdown: Shutdown;
}

export function adminDeps({ parts, options, shutdown }: AdminOptions): AdminDeps {
  return {
    agents: parts.workspaces,
    tokens: {
      create: (token) => parts.tokens.get().create(token),
      revoke: (name) => parts.tokens.get().revoke(name),
      list: () => parts.tokens.get().list(),
    },
    logs: parts.obs.log,
    clock: parts.clock,
    stopping: shutdown.stopping,
    status: () => status(parts),
    config: () => parts.runtime.loaded,
    reload: () => Promise.resolve(reload(parts, options)),
    stop: () => shutdown.begin(),
    backup: (file) => parts.store.get().backup(file),
    doctor: () =>
      Promise.resolve(
        examineSetup({
          home: options.home,
          env: options.env,
          nodeVersion: process.version,
          loaded: parts.runtime.loaded,
        }),
      ),
  };
}

async function status(parts: DaemonParts): Promise<DaemonStatus> {
  const { runtime, lag } = parts;
  const [runs, { checks }] = await Promise.all([openRuns(parts), parts.readiness.ask()]);
  return {
    pid: process.pid,
    version: parts.version,
    startedAt: parts.startedAt,
    url: parts.http.peek()?.url ?? "",
    provider: { name: runtime.chosen.name, reason: runtime.chosen.reason },
    autonomy: runtime.loaded.config.autonomy,
    runs,
    sessionsInMemory: parts.sessions.peek()?.size ?? 0,
    memoryBytes: process.memoryUsage.rss(),
    eventLoopDelayMs: lag.p99,
    problems: Object.entries(checks).flatMap(([part, { ok, detail }]) =>
      ok ? [] : [`${part}: ${detail ?? "not ready"}`],
    ),
    off: runtime.loaded.off.map(({ path, reason }) => `${path}: ${reason}`),
  };
}

/** Open runs by state; costs as much as there is open work. */
export async function openRuns(parts: DaemonParts): Promise<Partial<Record<RunState, number>>> {
  const counts: Partial<Record<RunState, number>> = {};
  for (const { states } of (await parts.store.peek()?.runs.openSessions()) ?? []) {
    for (const state of states) counts[state] = (counts[state] ?? 0) + 1;
  }
  return counts;
}

/** Reads the configuration again. What cannot be applied while running keeps its old value until a restart. */
function reload(parts: DaemonParts, { source }: DaemonOptions): ReloadOutcome {
  const next = loadConfig(source);
  if (next.kind === "invalid") return { kind: "invalid", problems: next.problems, warnings: next.warnings };
  const changes = reloadable(parts.runtime.loaded, next);
  parts.apply(inForce(parts.runtime.loaded, next));
  return { kind: "ok", warnings: next.warnings, ...changes };
}
