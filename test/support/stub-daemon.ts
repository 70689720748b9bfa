import { rmSync } from "node:fs";
import { createServer } from "node:http";
import type { DaemonOptions } from "../../src/app/daemon-module.ts";
import { acquireLock } from "../../src/app/lock.ts";

/** Nothing to begin early. */
export const prepareDaemon = (): AsyncDisposable => ({ [Symbol.asyncDispose]: () => Promise.resolve() });

/**
 * The least that a daemon has to do for the command line: hold the lock, answer on the socket, stop when told.
 * `BEAMCLAW_STUB` makes it fail at start.
 */
export async function runDaemon({ home, env, onReady, stderr }: DaemonOptions): Promise<number> {
  if (env["BEAMCLAW_STUB"] === "fail") {
    stderr.write("the disk is made of cheese\n");
    return 7;
  }
  const owner = { pid: process.pid, version: "0.0.0", startedAt: Date.now() };
  const attempt = acquireLock(home, owner);
  if (attempt.kind === "held") {
    stderr.write(`held by ${attempt.owner?.pid}\n`);
    return 1;
  }
  const stopped = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(request.url === "/admin/status" ? owner : { status: "ok" }));
    if (request.url === "/admin/stop") stopped.resolve();
  });
  rmSync(home.socket, { force: true });
  await new Promise<void>((resolve) => {
    server.listen(home.socket, resolve);
  });
  const onSignal = (): void => {
    stopped.resolve();
  };
  process.once("SIGTERM", onSignal);
  process.once("SIGINT", onSignal);
  onReady({ url: "http://127.0.0.1:1", provider: { name: "stub", reason: "a test", isDemo: false } });
  await stopped.promise;
  server.close();
  server.closeAllConnections();
  attempt.lock.release();
  return 0;
}
