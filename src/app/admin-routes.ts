import { lstatSync } from "node:fs";
import { isAbsolute } from "node:path";
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyPluginAsync, FastifyReply } from "fastify";
import { z } from "zod";
import { lazily } from "../kernel/lazily.ts";
import type { AgentRefusal, Workspaces } from "../agent/workspace.ts";
import { BeamclawError } from "../domain/error-catalogue.ts";
import { type AgentName, isAgentName } from "../domain/ids.ts";
import type { Clock } from "../kernel/clock.ts";
import type { TokenRecord } from "../store/ports.ts";
import type { AdminLogs, DaemonStatus, ReloadOutcome } from "./admin-objects.ts";
import type { LoadedConfig } from "./config.ts";
import type { Finding } from "./doctor.ts";

/** What the administration needs of the daemon; the composition root fills it in. */
export interface AdminDeps {
  readonly agents: Workspaces;
  readonly tokens: AdminTokens;
  readonly logs: AdminLogs;
  readonly clock: Clock;
  /** Aborts when the daemon begins to stop; ends the streams that would keep it. */
  readonly stopping: AbortSignal;
  status(): Promise<DaemonStatus>;
  /** The configuration in force. */
  config(): LoadedConfig;
  /** Reads the configuration again and applies what can be applied. Never rejects for its content. */
  reload(): Promise<ReloadOutcome>;
  /** Begins the graceful stop and returns at once. */
  stop(): void;
  /** Writes a consistent copy of the database to a file that does not exist yet. */
  backup(file: string): Promise<void>;
  doctor(): Promise<readonly Finding[]>;
}

export interface AdminTokens {
  /** Returns the secret, which is kept nowhere. Throws `token_exists`, `invalid_request`. */
  create(token: {
    readonly name: string;
    readonly scopes: readonly string[];
    readonly agent: AgentName | null;
    readonly expiresAt: number | null;
  }): Promise<string>;
  /** False if there is no live token of that name. */
  revoke(name: string): Promise<boolean>;
  list(): Promise<readonly TokenRecord[]>;
}

/**
 * The routes under `/admin`, for the local socket only: whoever can open it is the owner, so nothing here asks
 * for a token. Errors are thrown with a code of the catalogue; the application's error handler shapes them.
 */
export function adminRoutes(deps: AdminDeps): FastifyPluginAsync {
  return async (app) => {
    daemonRoutes(app, deps);
    agentRoutes(app, deps.agents);
    tokenRoutes(app, deps);
  };
}

function daemonRoutes(app: FastifyInstance, deps: AdminDeps): void {
  app.get("/admin/status", () => deps.status());
  app.get("/admin/doctor", async () => ({ data: await deps.doctor() }));
  app.get("/admin/config", () => {
    const { config, off, warnings } = deps.config();
    return { config, off, warnings };
  });
  app.post("/admin/reload", () => deps.reload());
  app.post("/admin/stop", async (_request, reply) => {
    deps.stop();
    return reply.code(202).send({ stopping: true });
  });
  app.post("/admin/backup", (request) => backUp(deps, request.body));
  app.get("/admin/logs", (request, reply) => {
    const { lines, follow } = parse(logsQuery, request.query);
    const recent = deps.logs.recent(lines);
    return sendLines(reply, follow ? followLines(deps, recent) : Readable.from(recent.map(line)));
  });
}

async function backUp(deps: AdminDeps, body: unknown): Promise<{ file: string }> {
  const { file } = parse(backupBody, body);
  if (!isAbsolute(file)) throw invalid("file", "must be an absolute path");
  if (lstatSync(file, { throwIfNoEntry: false }) !== undefined)
    throw invalid("file", `${file} exists already`);
  await deps.backup(file);
  return { file };
}

const backupBody = lazily(() => z.object({ file: z.string().min(1) }));
const logsQuery = lazily(() =>
  z.object({
    lines: z.coerce.number().int().min(0).max(10_000).default(100),
    follow: z
      .enum(["true", "false"])
      .default("false")
      .transform((text) => text === "true"),
  }),
);

const line = (text: string): string => `${text}\n`;

const sendLines = (reply: FastifyReply, lines: Readable): FastifyReply =>
  reply.type("application/x-ndjson").send(lines);

/** What a reader may lag behind before it misses lines; the log never waits for one. */
const MAX_BACKLOG_BYTES = 1_048_576;

/** The recent lines and then every new one, until the reader goes or the daemon stops. */
function followLines({ logs, stopping }: AdminDeps, recent: readonly string[]): Readable {
  const lines = new Readable({ read: () => undefined, encoding: "utf8" });
  for (const text of recent) lines.push(line(text));
  const unfollow = logs.follow((text) => {
    if (lines.readableLength < MAX_BACKLOG_BYTES) lines.push(line(text));
  });
  const end = (): void => {
    lines.push(null);
  };
  lines.once("close", () => {
    unfollow();
    stopping.removeEventListener("abort", end);
  });
  if (stopping.aborted) end();
  else stopping.addEventListener("abort", end, { once: true });
  return lines;
}

function agentRoutes(app: FastifyInstance, agents: Workspaces): void {
  app.get("/admin/agents", async () => ({ data: await agents.list() }));
  app.post("/admin/agents", async (request, reply) => {
    const { name } = parse(agentBody, request.body);
    return reply.code(201).send(accepted(await agents.create(name)));
  });
  app.get<Named>("/admin/agents/:name", async ({ params }) => accepted(await agents.show(params.name)));
  app.delete<Named>("/admin/agents/:name", async ({ params }) => accepted(await agents.delete(params.name)));
  app.post<Named>("/admin/agents/:name/rehatch", async ({ params }) =>
    accepted(await agents.rehatch(params.name)),
  );
}

interface Named {
  Params: { name: string };
}

const agentBody = lazily(() => z.object({ name: z.string() }));

function accepted<T>(result: { readonly kind: "ok"; readonly agent: T } | AgentRefusal): T {
  if (result.kind === "ok") return result.agent;
  throw new BeamclawError(
    result.code,
    result.message,
    result.code === "invalid_request" ? { param: "name" } : {},
  );
}

function tokenRoutes(app: FastifyInstance, { tokens, agents, clock }: AdminDeps): void {
  app.get("/admin/tokens", async () => ({ data: (await tokens.list()).map(tokenView) }));
  app.post("/admin/tokens", async (request, reply) => {
    const body = parse(tokenBody, request.body);
    const agent = body.agent ?? null;
    if (agent !== null && !(isAgentName(agent) && agents.exists(agent))) {
      throw new BeamclawError("agent_not_found", `there is no agent ${agent}`, { param: "agent" });
    }
    const expiresAt = body.expires_days === undefined ? null : clock.now() + body.expires_days * MS_PER_DAY;
    const secret = await tokens.create({ name: body.name, scopes: body.scopes, agent, expiresAt });
    return reply.code(201).send({ name: body.name, secret, expires_at: isoTime(expiresAt) });
  });
  app.delete<Named>("/admin/tokens/:name", async ({ params }) => {
    if (!(await tokens.revoke(params.name))) {
      throw new BeamclawError("not_found", `there is no live token ${params.name}`);
    }
    return { name: params.name };
  });
}

const MS_PER_DAY = 86_400_000;

const tokenBody = lazily(() =>
  z.object({
    name: z.string().min(1).max(64),
    scopes: z.array(z.string()).min(1).max(16),
    agent: z.string().optional(),
    expires_days: z.number().positive().max(36_500).optional(),
  }),
);

/** A token as it may be shown: without its hash. */
const tokenView = (token: TokenRecord): Record<string, unknown> => ({
  name: token.name,
  scopes: token.scopes,
  agent: token.agent,
  created_at: isoTime(token.createdAt),
  expires_at: isoTime(token.expiresAt),
  revoked_at: isoTime(token.revokedAt),
});

const isoTime = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

function parse<T extends z.ZodType>(schema: () => T, input: unknown): z.output<T> {
  const parsed = schema().safeParse(input ?? {});
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw invalid(issue?.path.join(".") || "body", issue?.message ?? "wrong");
}

const invalid = (param: string, message: string): BeamclawError =>
  new BeamclawError("invalid_request", `${param}: ${message}`, { param });
