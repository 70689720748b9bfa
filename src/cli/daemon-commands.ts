import { readOwner } from "../app/lock.ts";
import { formatProblem } from "../app/config-problem.ts";
import { BeamclawError, errorCatalogue } from "../domain/error-catalogue.ts";
import { loadedOrTold } from "./config-commands.ts";
import { untilGone } from "./daemon-exit.ts";
import { startDetached } from "./detached-start.ts";
import { startHere } from "./foreground-start.ts";
import type { Invocation } from "./invocation.ts";
import { arrayOf, objectOf, textOf } from "./json-fields.ts";

/** The daemon's life: start, stop, restart, reload, status, backup. */

export async function start(invocation: Invocation): Promise<number> {
  if (invocation.flag("foreground")) return startHere(invocation);
  const loaded = loadedOrTold(invocation);
  if (loaded === null) return errorCatalogue.configuration.exit;
  invocation.home.prepare();
  return startDetached(invocation);
}

export async function stop(invocation: Invocation): Promise<number> {
  const { client, home, terminal, surroundings } = invocation;
  if (!(await client.isRunning())) throw notRunning(invocation);
  const { pid, startedAt } = objectOf(await client.get("/admin/status"));
  await client.post("/admin/stop", {});
  if (!(await untilGone(home, { pid: Number(pid), startedAt: Number(startedAt) }, surroundings.clock))) {
    terminal.note(`beamclaw: the daemon (pid ${textOf(pid)}) has not stopped yet; see \`beamclaw logs\``);
    return 1;
  }
  terminal.line("stopped");
  return 0;
}

/** A daemon that holds its lock but does not answer is named, so that a person can end it. */
function notRunning({ home }: Invocation): BeamclawError {
  const owner = readOwner(home);
  const message =
    owner === null
      ? "no daemon is running"
      : `no daemon answers; the last one had the process id ${owner.pid}`;
  return new BeamclawError("daemon_unreachable", message);
}

export async function restart(invocation: Invocation): Promise<number> {
  // A configuration that is wrong must not cost the daemon that still runs.
  if (loadedOrTold(invocation) === null) return errorCatalogue.configuration.exit;
  if (await invocation.client.isRunning()) {
    const code = await stop(invocation);
    if (code !== 0) return code;
  }
  return start(invocation);
}

export async function reload(invocation: Invocation): Promise<number> {
  const { client, terminal } = invocation;
  const outcome = objectOf(await client.post("/admin/reload", {}));
  for (const warning of problemsOf(outcome["warnings"])) terminal.note(`warning: ${warning}`);
  if (outcome["kind"] === "invalid") {
    terminal.note("beamclaw: nothing was applied, the configuration is wrong:");
    for (const problem of problemsOf(outcome["problems"])) terminal.note(`  ${problem}`);
    return errorCatalogue.configuration.exit;
  }
  const applied = names(outcome["live"]);
  const waiting = names(outcome["restart"]);
  terminal.line(applied === "" ? "nothing to apply" : `applied: ${applied}`);
  if (waiting !== "") terminal.line(`needs \`beamclaw restart\`: ${waiting}`);
  return 0;
}

const names = (list: unknown): string => arrayOf(list).map(textOf).join(", ");

function problemsOf(list: unknown): readonly string[] {
  return arrayOf(list).map((entry) => {
    const { path, line, message, cure } = objectOf(entry);
    return formatProblem({
      path: textOf(path),
      line: typeof line === "number" ? line : null,
      message: textOf(message),
      cure: textOf(cure),
    });
  });
}

export async function status(invocation: Invocation): Promise<number> {
  const answer = await invocation.client.get("/admin/status");
  const { url, pid, version, startedAt, provider, autonomy, runs, ...rest } = objectOf(answer);
  const uptime = duration(invocation.surroundings.clock.now() - Number(startedAt));
  const open = Object.entries(objectOf(runs)).map(([state, count]) => `${textOf(count)} ${state}`);
  const problems = arrayOf(rest["problems"]).map(textOf);
  const rows: readonly (readonly [string, string])[] = [
    ["running", `${textOf(url)} (version ${textOf(version)}, pid ${textOf(pid)}, up ${uptime})`],
    ["provider", `${textOf(objectOf(provider)["name"])}: ${textOf(objectOf(provider)["reason"])}`],
    ["autonomy", textOf(autonomy)],
    ["runs", open.join(", ") || "none open"],
    ["sessions", `${textOf(rest["sessionsInMemory"])} in memory`],
    [
      "process",
      `${megabytes(rest["memoryBytes"])}, event loop p99 ${Number(rest["eventLoopDelayMs"]).toFixed(1)} ms`,
    ],
    ...problems.map((problem) => ["problem", problem] as const),
  ];
  invocation.present(answer, () => {
    for (const [name, text] of rows) invocation.terminal.line(`${name.padEnd(10)}${text}`);
  });
  return 0;
}

const megabytes = (bytes: unknown): string => `${Math.round(Number(bytes) / 1_048_576)} MiB`;

/** Two units at most: `3 d 4 h`, `12 min`, `8 s`. */
function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const units: readonly (readonly [string, number])[] = [
    ["d", Math.floor(seconds / 86_400)],
    ["h", Math.floor(seconds / 3_600) % 24],
    ["min", Math.floor(seconds / 60) % 60],
    ["s", seconds % 60],
  ];
  const first = units.findIndex(([, count]) => count > 0);
  const shown = units.slice(Math.max(0, first), Math.max(0, first) + 2).filter(([, count]) => count > 0);
  return shown.map(([unit, count]) => `${count} ${unit}`).join(" ") || "0 s";
}

export async function backup(invocation: Invocation): Promise<number> {
  const file = invocation.path(invocation.operand(0));
  await invocation.client.post("/admin/backup", { file }, { silenceMs: 0 });
  invocation.terminal.line(`wrote ${file}`);
  return 0;
}
