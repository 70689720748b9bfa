/** Where the log goes: a file of the home when nobody watches, standard output otherwise, readable on a terminal. */
import type { Writable } from "node:stream";
import type { LogSink } from "../obs/log.ts";
import { LogFile } from "../obs/log-file.ts";

const maxBytes = 5 * 1024 * 1024;
const files = 3;

/** `path` null: `stdout`. */
export async function openLogSink(path: string | null, stdout: Writable): Promise<LogSink> {
  if (path !== null) return new LogFile({ path, maxBytes, files });
  const isTerminal = "isTTY" in stdout && stdout.isTTY === true;
  const out = isTerminal ? await prettyStream(stdout) : stdout;
  return {
    write: (line) => void out.write(line),
    close: () => Promise.resolve(), // standard output belongs to the process
  };
}

/** Loaded only for people. */
async function prettyStream(stdout: Writable): Promise<Writable> {
  const { prettyFactory } = await import("pino-pretty");
  const pretty = prettyFactory({
    colorize: true,
    messageKey: "event",
    translateTime: "HH:MM:ss",
    ignore: "pid,hostname",
  });
  const { Writable: Sink } = await import("node:stream");
  return new Sink({
    write: (chunk: Buffer, _encoding, done) => {
      stdout.write(pretty(chunk.toString()));
      done();
    },
  });
}
