import { examineSetup, examineStopped, type Finding } from "../app/doctor.ts";
import type { Invocation } from "./invocation.ts";
import { dataOf, objectOf, textOf } from "./json-fields.ts";

/**
 * Everything that is wrong or switched off, each with its cure. A running daemon is asked, because its
 * environment (the keys that it sees) need not be that of this shell.
 */
export async function doctor(invocation: Invocation): Promise<number> {
  const { client } = invocation;
  const findings = (await client.isRunning()) ? await askDaemon(invocation) : await look(invocation);
  invocation.present(findings, () => {
    for (const { level, subject, text } of findings) {
      invocation.terminal.line(`${`[${level}]`.padEnd(7)}${subject}: ${text}`);
    }
  });
  return findings.some(({ level }) => level === "fail") ? 1 : 0;
}

async function askDaemon({ client }: Invocation): Promise<readonly Finding[]> {
  const status = objectOf(await client.get("/admin/status"));
  const running: Finding = {
    level: "ok",
    subject: "daemon",
    text: `answers at ${textOf(status["url"])} (pid ${textOf(status["pid"])})`,
  };
  const found = dataOf(await client.get("/admin/doctor")).map((entry): Finding => {
    const { level, subject, text } = objectOf(entry);
    return { level: levelOf(level), subject: textOf(subject), text: textOf(text) };
  });
  return [running, ...found];
}

const levelOf = (level: unknown): Finding["level"] =>
  level === "ok" || level === "warn" || level === "fail" ? level : "info";

async function look(invocation: Invocation): Promise<readonly Finding[]> {
  const { home, surroundings } = invocation;
  const loaded = invocation.loadConfig();
  const nodeVersion = process.version;
  const setup = examineSetup({ home, env: surroundings.env, nodeVersion, loaded });
  const self = {
    pid: process.pid,
    version: surroundings.installation.readVersion(),
    startedAt: surroundings.clock.now(),
  };
  const config = loaded.kind === "ok" ? loaded.config : null;
  const stopped = await examineStopped(home, config, self);
  return [
    ...setup,
    { level: "info", subject: "daemon", text: "not running; start it with `beamclaw start`" },
    ...stopped,
  ];
}
