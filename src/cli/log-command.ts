import { BeamclawError } from "../domain/error-catalogue.ts";
import type { Invocation } from "./invocation.ts";
import { readTail } from "./log-tail.ts";
import type { Terminal } from "./terminal.ts";

const DEFAULT_LINES = 100;

/** The daemon's log: from the daemon while it runs, else from its file. */
export async function logs(invocation: Invocation): Promise<number> {
  const { client, terminal, home } = invocation;
  const lines = invocation.number("lines", 0, 10_000) ?? DEFAULT_LINES;
  const follow = invocation.flag("follow");
  const print = await printer(terminal, invocation.flag("json"));
  if (await client.isRunning()) {
    const { body } = await client.stream("GET", `/admin/logs?lines=${lines}&follow=${follow}`, {});
    for await (const line of linesOf(body)) print(line);
    return 0;
  }
  if (follow)
    throw new BeamclawError("daemon_unreachable", "no daemon is running, so nothing can be followed");
  const found = readTail(home.logFile, lines);
  if (found.length === 0) terminal.note(`There is no log yet in ${home.logFile}.`);
  for (const line of found) print(line);
  return 0;
}

/** People get a readable line, everything else the record as it is. */
async function printer(terminal: Terminal, json: boolean): Promise<(line: string) => void> {
  if (json || !terminal.isShown) return (line) => terminal.line(line);
  const { prettyFactory } = await import("pino-pretty");
  const pretty = prettyFactory({ colorize: false, messageKey: "event", translateTime: "SYS:HH:MM:ss" });
  return (line) => terminal.write(pretty(line) ?? `${line}\n`);
}

async function* linesOf(body: AsyncIterable<string>): AsyncIterable<string> {
  let rest = "";
  for await (const chunk of body) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    yield* lines.filter((line) => line !== "");
  }
  if (rest !== "") yield rest;
}
