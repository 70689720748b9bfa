/**
 * A whole daemon in this process. Takes the home and starts the writer thread; the rest of the program is loaded
 * while that opens the database.
 */
import { SystemClock } from "../kernel/clock.ts";
import { WriterBoot } from "../store/writer-boot.ts";
import type { DaemonOptions, Prepared } from "./daemon-module.ts";
import { acquireLock } from "./lock.ts";

/** The writer thread, before it is known where the database is. */
export const prepareDaemon = (): WriterBoot => new WriterBoot(writerProgram());

export async function runDaemon(options: DaemonOptions, prepared?: Prepared): Promise<number> {
  const version = options.installation.readVersion();
  const owner = { pid: process.pid, version, startedAt: new SystemClock().now() };
  const attempt = acquireLock(options.home, owner);
  if (attempt.kind === "held") {
    const by = attempt.owner === null ? "" : ` (process ${attempt.owner.pid})`;
    options.stderr.write(
      `beamclaw: a daemon runs in ${options.home.root} already${by}; stop it first: beamclaw stop\n`,
    );
    return 1;
  }
  using _lock = attempt.lock; // held until everything is closed
  await using boot = prepared instanceof WriterBoot ? prepared : prepareDaemon();
  const file = options.loaded.config.store.path ?? options.home.database;
  boot.open({ file });
  const { serve } = await import("./serve.ts");
  return await serve(options, owner, { file, program: writerProgram(), boot });
}

/** In a bundle the writer's program lies beside this file; from the sources, beside the store's. */
const writerProgram = (): URL =>
  import.meta.url.endsWith(".ts")
    ? new URL("../store/writer-worker.ts", import.meta.url)
    : new URL("./writer-worker.cjs", import.meta.url);
