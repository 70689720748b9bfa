import type { AddressInfo, Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import type { InjectOptions } from "fastify";
import { afterEach } from "vitest";
import { type AgentName, asId } from "../../src/domain/ids.ts";
import type { Scope } from "../../src/gateway/caller.ts";
import { canonicalUser } from "../../src/gateway/identity.ts";
import type { Door, GatewayDeps, GatewayObs, GatewayOptions } from "../../src/gateway/ports.ts";
import { allRoutes } from "../../src/gateway/routes.ts";
import { createGateway } from "../../src/gateway/server.ts";
import { mintTokenSecret, TokenBook } from "../../src/gateway/tokens.ts";
import { ManualClock } from "../../src/kernel/clock.ts";
import type { World } from "../support/agent-world.ts";
import { MemoryStore, MemoryTokens } from "./memory-store.ts";
import { ScriptedConversations } from "./scripted-conversations.ts";

export interface HarnessOptions {
  readonly door?: Partial<Extract<Door, { kind: "tcp" }>> | "local";
  readonly user?: string;
  readonly sharing?: "shared" | "per_channel";
  readonly bodyLimitBytes?: number;
  /** Real conversations over a real store, in place of scripted ones. */
  readonly world?: World;
}

export const agent = asId<AgentName>("default");
export const coder = asId<AgentName>("coder");
/** 2026-01-02T03:04:05.678Z */
const START = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

export type Harness = Awaited<ReturnType<typeof openGateway>>;

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const gateway of opened.splice(0)) await gateway.close();
});

/** A gateway over scripted conversations, with an owner token; closed after the test. */
export async function openGateway(options: HarnessOptions = {}) {
  const { world } = options;
  const clock = world?.clock ?? new ManualClock(START);
  const store = new MemoryStore();
  const tokens = await TokenBook.open(world?.store.tokens ?? new MemoryTokens(), clock);
  const conversations = new ScriptedConversations(store, clock);
  const obs = new RecordingObs();
  const agents: readonly AgentName[] = [agent, coder];
  const readiness = { ready: true, checks: { store: { ok: true } } };
  const deps: GatewayDeps = {
    conversations: world?.sessions ?? conversations,
    store: world?.store ?? store,
    tokens,
    clock,
    obs,
    agents: { list: async () => agents.map((name) => ({ name })), exists: (name) => agents.includes(name) },
    metrics: { render: async () => "# metrics\n" },
    readiness: async () => readiness,
    version: "1.2.3",
  };
  const settings = gatewayOptions(options);
  const gateway = createGateway(deps, settings);
  const sockets = new Set<Socket>();
  gateway.app.server.on("connection", (socket: Socket) => sockets.add(socket));
  const owner = mintTokenSecret();
  await tokens.ensureOwner(owner);
  const harness = {
    ...gateway,
    clock,
    store,
    tokens,
    conversations,
    obs,
    owner,
    routes: allRoutes({ ...deps, rules: settings.identity, draining: new AbortController().signal }),
    readiness,
    /** A token of its own, as an Authorization header. */
    token: async (name: string, scopes: readonly Scope[], only: AgentName | null = null) =>
      bearer(await tokens.create({ name, scopes, agent: only, expiresAt: null })),
    openSockets: () => [...sockets],
    inject: (request: InjectOptions) => gateway.app.inject(withDefaults(request, owner)),
    /** Base URL of the gateway on a free loopback port. */
    listen: async () => {
      await gateway.app.listen({ host: "127.0.0.1", port: 0 });
      return `http://127.0.0.1:${(gateway.app.server.address() as AddressInfo).port}`;
    },
  };
  opened.push(harness);
  return harness;
}

function gatewayOptions({ door = {}, user, sharing, bodyLimitBytes }: HarnessOptions): GatewayOptions {
  const tcp: Door = {
    kind: "tcp",
    loopback: true,
    hosts: [],
    trustProxy: [],
    corsOrigins: [],
    rateLimit: { requests: 60, windowSeconds: 60, limitLocal: false },
    ...(door === "local" ? {} : door),
  };
  return {
    door: door === "local" ? { kind: "local" } : tcp,
    identity: {
      canonicalUser: canonicalUser(user),
      localUser: "alice",
      sharing: sharing ?? "shared",
      defaultAgent: agent,
    },
    bodyLimitBytes: bodyLimitBytes ?? 65_536,
  };
}

export const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });

/** The owner's token and a loopback Host, unless the request says otherwise. */
function withDefaults(request: InjectOptions, owner: string): InjectOptions {
  return {
    ...request,
    headers: { host: "127.0.0.1:18800", ...bearer(owner), ...request.headers },
  };
}

/** A POST of a chat request whose only message is `text`, unless `body` brings others. */
export const chat = (
  text: string,
  body: object = {},
  headers: Record<string, string> = {},
): InjectOptions => ({
  method: "POST",
  url: "/v1/chat/completions",
  headers,
  payload: { model: "beamclaw", messages: [{ role: "user", content: text }], ...body },
});

export class RecordingObs implements GatewayObs {
  readonly requests: Parameters<GatewayObs["httpRequest"]>[0][] = [];
  readonly refused: Parameters<GatewayObs["requestRefused"]>[0][] = [];
  readonly defects: Error[] = [];
  readonly #waiters: { readonly count: number; readonly resolve: () => void }[] = [];

  /** Resolves when so many requests have ended, and what hangs on the end has happened. */
  async ended(count: number): Promise<void> {
    if (this.requests.length < count) {
      await new Promise<void>((resolve) => this.#waiters.push({ count, resolve }));
    }
    await setImmediate();
  }

  httpRequest(record: Parameters<GatewayObs["httpRequest"]>[0]): void {
    this.requests.push(record);
    for (const { count, resolve } of this.#waiters) if (this.requests.length >= count) resolve();
  }

  requestRefused(record: Parameters<GatewayObs["requestRefused"]>[0]): void {
    this.refused.push(record);
  }

  defect(error: Error): void {
    this.defects.push(error);
  }
}
