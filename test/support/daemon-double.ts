import { rmSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import fastify, { type FastifyInstance } from "fastify";
import { Workspaces } from "../../src/agent/workspace.ts";
import type { DaemonStatus, ReloadOutcome } from "../../src/app/admin-objects.ts";
import { adminRoutes } from "../../src/app/admin-routes.ts";
import { loadConfig, type LoadedConfig } from "../../src/app/config.ts";
import type { Finding } from "../../src/app/doctor.ts";
import { type Env, Home } from "../../src/app/home.ts";
import { Installation } from "../../src/app/installation.ts";
import { main } from "../../src/cli/main.ts";
import { BeamclawError } from "../../src/domain/error-catalogue.ts";
import { type AgentName, asId } from "../../src/domain/ids.ts";
import { ManualClock } from "../../src/kernel/clock.ts";
import type { TokenRecord } from "../../src/store/ports.ts";

/** The daemon's side of the control socket without what is behind it: the real admin routes over plain lists. */
export interface DaemonDouble extends AsyncDisposable {
  readonly app: FastifyInstance;
  readonly home: Home;
  readonly tokens: TokenRecord[];
  readonly calls: string[];
  /** Writes a line to everybody who follows the log. */
  log(line: string): void;
  outcome: ReloadOutcome;
  stopping: AbortController;
}

const defaultAgent = asId<AgentName>("default");

export function prepareHome(base: string): Home {
  const home = new Home(join(base, "home"), base);
  home.prepare();
  return home;
}

/** `routes` adds what stands for `/v1`. */
export async function startDouble(
  home: Home,
  routes: (app: FastifyInstance) => void = () => undefined,
): Promise<DaemonDouble> {
  const installation = new Installation();
  const app = fastify();
  const listeners = new Set<(line: string) => void>();
  const double: DaemonDouble = {
    app,
    home,
    tokens: [],
    calls: [],
    stopping: new AbortController(),
    outcome: { kind: "ok", live: ["loop.turnSeconds"], restart: ["gateway.port"], warnings: [] },
    log: (line) => {
      for (const listener of listeners) listener(line);
    },
    [Symbol.asyncDispose]: async () => {
      double.stopping.abort();
      await app.close();
      rmSync(home.socket, { force: true });
    },
  };
  app.setErrorHandler((error, _request, reply) => {
    if (!(error instanceof BeamclawError)) throw error;
    return reply.code(error.entry.status).send({ error: error.message, code: error.code });
  });
  app.get("/health", () => ({ status: "ok", ts: 0 }));
  const agents = new Workspaces({ root: home.agents, templates: installation.agentTemplates, defaultAgent });
  await agents.prepare();
  await app.register(
    adminRoutes({
      agents,
      tokens: tokenList(double.tokens),
      clock: new ManualClock(0),
      stopping: double.stopping.signal,
      logs: {
        recent: (limit) => ['{"msg":"one"}', '{"msg":"two"}'].slice(-limit),
        follow: (listener) => {
          listeners.add(listener);
          return () => listeners.delete(listener);
        },
      },
      status: async () => status,
      config: () => defaults(home),
      reload: async () => double.outcome,
      stop: () => double.calls.push("stop"),
      backup: async (file) => {
        double.calls.push(`backup ${file}`);
      },
      doctor: async () => findings,
    }),
  );
  routes(app);
  await app.listen({ path: home.socket });
  return double;
}

const status: DaemonStatus = {
  pid: 4_194_305, // above Linux's largest process id: a daemon that is surely gone
  version: "0.1.0",
  startedAt: 0,
  url: "http://127.0.0.1:18800",
  provider: { name: "demo", reason: "no provider has a key" },
  autonomy: "supervised",
  runs: { running: 2 },
  sessionsInMemory: 3,
  memoryBytes: 64 * 1_048_576,
  eventLoopDelayMs: 1.25,
  problems: ["the disk is full"],
  off: ["tools.webSearch: BRAVE_API_KEY is not set"],
};

const findings: readonly Finding[] = [{ level: "warn", subject: "provider", text: "demo" }];

function defaults(home: Home): LoadedConfig {
  const loaded = loadConfig({
    env: {},
    home: home.root,
    file: home.configFile,
    fileRequired: false,
    defaultsText: new Installation().readDefaults(),
  });
  if (loaded.kind === "invalid") throw new Error("the shipped defaults are wrong");
  return loaded;
}

function tokenList(tokens: TokenRecord[]) {
  return {
    list: async () => tokens,
    create: async (token: Pick<TokenRecord, "name" | "scopes" | "agent" | "expiresAt">) => {
      if (tokens.some(({ name }) => name === token.name)) {
        throw new BeamclawError("token_exists", `a token named ${token.name} exists`);
      }
      tokens.push({ ...token, hash: "hash-of-the-secret", createdAt: 0, revokedAt: null });
      return "beamclaw_secret";
    },
    revoke: async (name: string) => {
      const index = tokens.findIndex((token) => token.name === name);
      if (index >= 0) tokens.splice(index, 1);
      return index >= 0;
    },
  };
}

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  readonly env?: Env;
  /** What stands on standard input. With `tty` it is what the person types. */
  readonly input?: string;
  readonly tty?: boolean;
  readonly cwd?: string;
}

/** Runs the command line in this process, as `bin/` would. */
export async function beamclaw(home: Home, argv: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { env = {}, input = "", tty = false, cwd = home.root } = options;
  const stdin = Object.assign(new PassThrough(), { isTTY: tty });
  const stdout = Object.assign(new PassThrough(), { isTTY: tty });
  const stderr = Object.assign(new PassThrough(), { isTTY: tty });
  stdin.end(input);
  const code = await main({
    argv,
    env: { HOME: home.root, BEAMCLAW_HOME: home.root, ...env },
    cwd,
    stdin,
    stdout,
    stderr,
    loadDaemon: () => Promise.reject(new Error("no daemon in this test")),
  });
  return { code, out: drain(stdout), err: drain(stderr) };
}

const drain = (stream: PassThrough): string => String(stream.read() ?? "");
