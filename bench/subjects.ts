/** What is compared: how each gateway is started, and nothing else about it. All speak `POST /v1/chat/completions`. */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "./child.ts";

export const subjectNames = ["floor", "naive", "beamclaw"] as const;
export type SubjectName = (typeof subjectNames)[number];

/** Where a gateway runs: a directory of its own, its port, the model's port. */
export interface Place {
  readonly directory: string;
  readonly port: number;
  readonly upstream: number;
  /** Seconds after which an idle session leaves memory, for gateways that keep sessions there. */
  readonly idleSeconds: number;
}

export interface Subject {
  readonly name: string;
  readonly model: string;
  /** What has to be done once, before its first start. Throws when it cannot be done. */
  prepare?(): void;
  command(place: Place): Command;
  /** The bearer token, once the gateway is healthy. */
  token(place: Place): Promise<string>;
}

const ROOT = fileURLToPath(new URL("..", import.meta.url));

function comparison(name: "floor" | "naive"): Subject {
  return {
    name,
    model: "mock",
    command: ({ directory, port, upstream }) => ({
      program: process.execPath,
      args: [
        join(ROOT, "bench", name, "gateway.ts"),
        `--port=${port}`,
        `--upstream=${upstream}`,
        `--file=${join(directory, "messages.db")}`,
        `--log=${join(directory, "turns.log")}`,
      ],
      env: {},
      logFile: join(directory, "output.log"),
    }),
    token: () => Promise.resolve("none"),
  };
}

/** A quiet HTTP server with a SQLite file, for what a daemon costs before anyone talks to it. It takes no turns. */
export const quietFloor: Subject = {
  name: "quiet floor",
  model: "none",
  command: ({ directory, port }) => ({
    program: process.execPath,
    args: [join(ROOT, "bench", "floor", "idle.mjs"), String(port), join(directory, "quiet.db")],
    env: {},
    logFile: join(directory, "output.log"),
  }),
  token: () => Promise.resolve("none"),
};

const beamclaw: Subject = {
  name: "beamclaw",
  model: "beamclaw",
  // What is measured is what is in the tree now; an unchanged one is not built again.
  prepare: () => execFileSync(process.execPath, [join(ROOT, "scripts", "build.ts")], { stdio: "inherit" }),
  command: (place) => {
    const home = join(place.directory, "home");
    mkdirSync(home, { recursive: true, mode: 0o700 });
    writeFileSync(join(home, "config.yaml"), JSON.stringify(configuration(place), null, 2));
    return {
      program: process.execPath,
      args: [join(ROOT, "bin", "beamclaw"), "start", "--foreground"],
      env: { BEAMCLAW_HOME: home, HOME: place.directory },
      logFile: join(place.directory, "output.log"),
    };
  },
  token: async ({ directory }) => (await readFile(join(directory, "home", "token"), "utf8")).trim(),
};

/** JSON is YAML. Everything that is not about the rig keeps the product's defaults. */
function configuration({ port, upstream }: Place): object {
  return {
    gateway: { host: "127.0.0.1", port },
    provider: "bench",
    providers: {
      bench: {
        kind: "openai",
        baseUrl: `http://127.0.0.1:${upstream}/v1`,
        apiKey: null,
        model: "mock",
        contextWindow: 1_000_000,
        concurrency: 512,
      },
    },
    sessions: {
      concurrentRuns: 512,
      queue: { perSession: 32, total: 2000 },
    },
  };
}

export const subjects: Readonly<Record<SubjectName, Subject>> = {
  floor: comparison("floor"),
  naive: comparison("naive"),
  beamclaw,
};
