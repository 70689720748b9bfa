import { closeSync, writeSync } from "node:fs";
import type { Readable } from "node:stream";
import type { DaemonReady } from "../app/daemon-module.ts";
import { objectOf, textOf } from "./json-fields.ts";

/**
 * How a detached daemon tells the command that started it that it is ready: one line of JSON on a pipe. The
 * end of the pipe without a line means that it died, so nobody has to poll.
 */
export function announceReady(fd: number, ready: DaemonReady): void {
  try {
    writeSync(fd, `${JSON.stringify(ready)}\n`);
    closeSync(fd);
  } catch (error) {
    // The command may have gone before the daemon was ready; the daemon does not mind.
    if (!(error instanceof Error && "code" in error && error.code === "EPIPE")) throw error;
  }
}

/** The announcement, or null where the pipe ended without one. */
export async function readReady(pipe: Readable): Promise<DaemonReady | null> {
  let text = "";
  for await (const chunk of pipe) {
    text += String(chunk);
    if (text.includes("\n")) return readyOf(text);
  }
  return null;
}

function readyOf(line: string): DaemonReady {
  const { url, provider } = objectOf(JSON.parse(line));
  const { name, reason, isDemo } = objectOf(provider);
  return {
    url: textOf(url),
    provider: { name: textOf(name), reason: textOf(reason), isDemo: isDemo === true },
  };
}
