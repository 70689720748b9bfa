/** A running gateway under measurement, whichever subject it is. */
import { mkdirSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { Child, freePort, untilHealthy, type Command } from "./child.ts";
import { cpuSeconds, rssBytes } from "./proc.ts";
import type { Place, Subject } from "./subjects.ts";

const Reading = z.object({
  /** Milliseconds by which the event loop was late. */
  loop: z.object({ p50: z.number(), p99: z.number(), max: z.number() }),
  heapBytes: z.number(),
  rssBytes: z.number(),
});
export type Reading = z.infer<typeof Reading>;

export interface GatewayOptions {
  readonly directory: string;
  readonly upstream: number;
  readonly idleSeconds?: number;
  /** Load the probe: event-loop delay, heap. */
  readonly probe?: "loop" | "heap";
  /** Count every sync of a file under strace. */
  readonly countSyncs?: boolean;
  /** How often `/health` is asked until it answers. */
  readonly pollMs?: number;
}

const PROBE = new URL("probe.ts", import.meta.url).href;
const READING_WITHIN_MS = 10_000;

export class Gateway implements AsyncDisposable {
  readonly subject: Subject;
  readonly port: number;
  readonly token: string;
  /** Spawn to the first 200 of `/health`. */
  readonly healthyAfterMs: number;
  readonly #child: Child;
  readonly #directory: string;

  private constructor(subject: Subject, child: Child, place: Place, token: string, healthyAfterMs: number) {
    this.subject = subject;
    this.port = place.port;
    this.token = token;
    this.healthyAfterMs = healthyAfterMs;
    this.#child = child;
    this.#directory = place.directory;
  }

  /** Starts the gateway in `options.directory`, which may hold the state of an earlier life. Rejects with its output. */
  static async start(subject: Subject, options: GatewayOptions): Promise<Gateway> {
    const { directory, upstream, idleSeconds = 3600 } = options;
    mkdirSync(directory, { recursive: true });
    const place = { directory, port: await freePort(), upstream, idleSeconds };
    const command = instrumented(subject.command(place), options);
    const began = performance.now();
    const child = new Child(command);
    try {
      await untilHealthy(child, place.port, options.pollMs === undefined ? {} : { everyMs: options.pollMs });
      const healthyAfterMs = performance.now() - began;
      return new Gateway(subject, child, place, await subject.token(place), healthyAfterMs);
    } catch (error) {
      await child.stop();
      const output = await readFile(join(directory, "output.log"), "utf8");
      throw new Error(`${subject.name} did not start: ${output.slice(-2000)}`, { cause: error });
    }
  }

  cpuSeconds(): number {
    return cpuSeconds(this.#child.pid);
  }

  rssBytes(): number {
    return rssBytes(this.#child.pid);
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** What the probe saw since the last reading. Only for gateways started with one. */
  async read(): Promise<Reading> {
    const file = probeFile(this.#directory);
    await rm(file, { force: true });
    this.#child.signal("SIGUSR2");
    for (let waited = 0; waited < READING_WITHIN_MS; waited += 5) {
      await sleep(5);
      const text = await readFile(file, "utf8").catch(() => undefined);
      if (text !== undefined) return Reading.parse(JSON.parse(text));
    }
    throw new Error(`${this.subject.name} gave no probe reading`);
  }

  /** Syncs since the start. Only for gateways started with `countSyncs`. */
  async syncs(): Promise<number> {
    const text = await readFile(syncFile(this.#directory), "utf8");
    return text.split("\n").filter((line) => /\bf(?:data)?sync\(/.test(line)).length;
  }

  async stop(): Promise<void> {
    await this.#child.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

function probeFile(directory: string): string {
  return join(directory, "probe.json");
}

function syncFile(directory: string): string {
  return join(directory, "syncs.strace");
}

function instrumented(command: Command, options: GatewayOptions): Command {
  const { directory, probe, countSyncs = false } = options;
  const env = {
    ...command.env,
    ...(probe !== undefined && { NODE_OPTIONS: `--import ${PROBE}`, BENCH_PROBE: probeFile(directory) }),
    ...(probe === "heap" && { BENCH_PROBE_GC: "1" }),
  };
  if (!countSyncs) return { ...command, env };
  // -D keeps the gateway our own child; --seccomp-bpf stops it at the counted calls only.
  const flags = ["-D", "-f", "--seccomp-bpf", "-e", "trace=fdatasync,fsync", "-e", "signal=none"];
  const args = [...flags, "-o", syncFile(directory), command.program, ...command.args];
  return { ...command, env, program: "strace", args };
}
