/** The children of the tree: each builds its part when it starts, provides it, and takes it down when it stops. */
import { chmod, rm } from "node:fs/promises";
import { userInfo } from "node:os";
import { SessionRegistry } from "../agent/session-registry.ts";
import { timers } from "../agent/timers.ts";
import { asId, type AgentName } from "../domain/ids.ts";
import { canonicalUser } from "../gateway/identity.ts";
import type { Door, GatewayDeps, GatewayOptions } from "../gateway/ports.ts";
import { isLoopback } from "../gateway/rate-limit.ts";
import { createGateway } from "../gateway/server.ts";
import { TokenBook } from "../gateway/tokens.ts";
import { toError } from "../kernel/errors.ts";
import { watchLag } from "../kernel/lag-watchdog.ts";
import { onAbort } from "../kernel/scope.ts";
import type { Child } from "../kernel/supervisor.ts";
import type { WriterBoot } from "../store/writer-boot.ts";
import { openSqliteStore } from "../store/sqlite-store.ts";
import { type AdminDeps, adminRoutes } from "./admin-routes.ts";
import type { DaemonParts } from "./daemon-parts.ts";
import { ReadinessProbe } from "./readiness.ts";
import type { TreeChildren } from "./tree.ts";

export interface ChildrenOptions {
  readonly parts: DaemonParts;
  readonly admin: AdminDeps;
  readonly database: Database;
}

/** Where conversations are kept; the same for the daemon's whole life, whatever the configuration says later. */
export interface Database {
  readonly file: string;
  /** The writer thread's program. */
  readonly program: URL;
  /** The first writer thread, which starts while the rest of the daemon is loaded. */
  readonly boot: WriterBoot;
}

export function daemonChildren(options: ChildrenOptions): TreeChildren {
  const { parts } = options;
  return {
    watchdog: watchLag({
      clock: parts.clock,
      onLag: (lag) => {
        parts.lag = lag;
        parts.obs.events.lag(lag);
      },
    }),
    store: storeChild(options),
    sessions: sessionsChild(parts),
    timers: (context) => {
      const sessions = parts.sessions.get();
      return timers(parts.services(), (approval) => sessions.expire(approval))(context);
    },
    socket: socketChild(options),
    http: httpChild(parts),
  };
}

/** The death of the writer thread is this child's crash: everyone who relies on the store starts again with it. */
function storeChild({ parts, database }: ChildrenOptions): Child {
  let boot: WriterBoot | null = database.boot;
  return async ({ signal, ready }) => {
    const first = boot;
    boot = null; // a restart after a crash begins with a thread of its own
    const { promise: broken, reject } = Promise.withResolvers<never>();
    broken.catch(() => undefined); // raced below, or too late to matter
    const store = await openSqliteStore({
      file: database.file,
      attachmentsDir: parts.home.attachments,
      clock: parts.clock,
      writer: "thread",
      workerUrl: database.program,
      ...(first !== null && { boot: first }),
      onError: reject,
    }).catch((thrown: unknown) => {
      throw naming(database.file, toError(thrown));
    });
    try {
      using _store = parts.store.provide(store);
      const tokens = await TokenBook.open(store.tokens, parts.clock);
      await tokens.ensureOwner(parts.ownerSecret);
      using _tokens = parts.tokens.provide(tokens);
      ready();
      await Promise.race([aborted(signal), broken]);
    } finally {
      await store.close();
    }
  };
}

/** Whoever starts the daemon has to know which file is meant. */
const naming = (file: string, error: Error): Error =>
  error.message.includes(file) ? error : new Error(`${file}: ${error.message}`, { cause: error });

function sessionsChild(parts: DaemonParts): Child {
  return async ({ signal, ready }) => {
    const { sessions: limits } = parts.runtime.loaded.config;
    const sessions = new SessionRegistry(parts.services(), {
      concurrentRuns: limits.concurrentRuns,
      queue: limits.queue,
    });
    using _ = parts.sessions.provide(sessions);
    await parts.runtime.reapLeftovers();
    const { promise: serving, resolve } = Promise.withResolvers<void>();
    const running = sessions.run({ signal, ready: resolve });
    await Promise.race([serving, running]);
    await sessions.recover();
    ready();
    await running;
  };
}

function socketChild({ parts, admin }: ChildrenOptions): Child {
  return async ({ signal, ready }) => {
    const gateway = createGateway(gatewayDeps(parts), gatewayOptions(parts, { kind: "local" }));
    await gateway.app.register(adminRoutes(admin));
    try {
      await rm(parts.home.socket, { force: true }); // a former daemon's; the home's lock says that none runs
      await gateway.app.listen({ path: parts.home.socket });
      await chmod(parts.home.socket, 0o600);
      using _ = parts.socket.provide(gateway);
      ready();
      await aborted(signal);
    } finally {
      await gateway.close();
    }
  };
}

function httpChild(parts: DaemonParts): Child {
  return async ({ signal, ready }) => {
    const { host, port } = parts.runtime.loaded.config.gateway;
    const gateway = createGateway(gatewayDeps(parts), gatewayOptions(parts, tcpDoor(parts)));
    try {
      const url = await gateway.app.listen({ host, port });
      using _ = parts.http.provide({ ...gateway, url });
      ready();
      await aborted(signal);
    } finally {
      await gateway.close();
    }
  };
}

function tcpDoor({ runtime }: DaemonParts): Door {
  const { gateway } = runtime.loaded.config;
  return {
    kind: "tcp",
    loopback: isLoopback(gateway.host),
    hosts: gateway.hosts,
    trustProxy: gateway.trustProxy,
    corsOrigins: gateway.cors.origins,
    rateLimit: gateway.rateLimit,
  };
}

function gatewayOptions({ runtime }: DaemonParts, door: Door): GatewayOptions {
  const { config, user } = runtime.loaded;
  return {
    door,
    identity: {
      canonicalUser: canonicalUser(user ?? undefined),
      localUser: userInfo().username,
      sharing: config.sessions.sharing,
      defaultAgent: asId<AgentName>(config.agents.default),
    },
    bodyLimitBytes: config.gateway.bodyLimitBytes,
  };
}

function gatewayDeps(parts: DaemonParts): GatewayDeps {
  const { obs, clock } = parts;
  const readiness = new ReadinessProbe({
    clock,
    store: () => parts.store.peek(),
    provider: () => parts.runtime.chosen.name,
  });
  return {
    conversations: parts.sessions.get(),
    store: parts.store.get(),
    agents: parts.workspaces,
    tokens: parts.tokens.get(),
    clock,
    metrics: obs.metrics,
    readiness: () => readiness.ask(),
    version: parts.version,
    obs: {
      httpRequest: ({ requestId, durationMs, ...rest }) =>
        obs.events.httpRequest({ ...rest, request_id: requestId, duration_ms: durationMs }),
      requestRefused: ({ requestId, ...rest }) =>
        obs.events.requestRefused({ ...rest, request_id: requestId }),
      defect: (error) =>
        obs.events.defect({
          where: "gateway",
          error: error.message,
          ...(error.stack !== undefined && { stack: error.stack }),
        }),
    },
  };
}

async function aborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  using _ = onAbort(signal, resolve);
  await promise;
}
