import { randomUUID } from "node:crypto";
import { fastify, type FastifyInstance, type FastifyRequest } from "fastify";
import { BeamclawError } from "../domain/error-catalogue.ts";
import { type Gate, localGate, tokenGate } from "./auth.ts";
import { answerBadHttp, answerBadUrl, installErrorReplies } from "./error-replies.ts";
import { readJsonBodies } from "./json-body.ts";
import { originProblem } from "./origin.ts";
import type { Door, GatewayDeps, GatewayObs, GatewayOptions } from "./ports.ts";
import type { Route } from "./route.ts";
import { allRoutes } from "./routes.ts";
import { Traffic } from "./traffic.ts";

/** A client has this long to send its whole request. */
const REQUEST_MS = 60_000;
/** Longer than the usual minute of load balancers, so that they close idle connections and not we. */
const KEEP_ALIVE_MS = 75_000;
const MOST_CONNECTIONS = 10_000;
const MOST_ID_CHARACTERS = 512;
const REQUEST_ID = /^[\w.:-]{1,128}$/;

/**
 * One door of the HTTP application. The daemon makes two: one for TCP, where a token says who calls, and one
 * for the local socket, where whoever can open the file is the owner. They are separate applications over the
 * same parts, so that no request can ever be taken for one of the other door, and the local one can have
 * routes of its own (`app.register` before `app.listen`).
 */
export interface Gateway {
  /** Not listening yet: `app.listen({ host, port })` or `app.listen({ path })`. */
  readonly app: FastifyInstance;
  /** Refuses new work with 503 from now on; resolves when everything that was open has ended. */
  drain(): Promise<void>;
  /** Closes all connections, also those that are still in use, and stops listening. */
  close(): Promise<void>;
}

export function createGateway(deps: GatewayDeps, options: GatewayOptions): Gateway {
  const { door } = options;
  const traffic = new Traffic(deps.clock, deps.obs);
  const app = createApp(options, deps.obs);
  const routes = allRoutes({ ...deps, rules: options.identity, draining: traffic.draining });
  app.decorateRequest("caller", null);
  app.decorateRequest("rawBody", null);
  readJsonBodies(app);
  installErrorReplies(app, deps.obs, routes);
  app.addHook("onRequest", (request, reply, done) => {
    traffic.enter(request, reply);
    reply.header("x-request-id", request.id);
    if (door.kind === "tcp") refuseStrangers(door, request);
    done();
  });
  if (door.kind === "tcp" && door.corsOrigins.length > 0) allowOrigins(app, door.corsOrigins);
  const gate = door.kind === "local" ? localGate : tokenGate(door, deps.tokens, deps.clock);
  for (const route of routes) mount(app, route, gate, traffic);
  return {
    app,
    drain: () => traffic.drain(),
    close: async () => {
      void traffic.drain();
      await app.close();
    },
  };
}

function createApp({ door, bodyLimitBytes }: GatewayOptions, obs: GatewayObs): FastifyInstance {
  const proxies = door.kind === "tcp" ? door.trustProxy : [];
  const app = fastify({
    bodyLimit: bodyLimitBytes,
    trustProxy: proxies.length > 0 ? [...proxies] : false,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: true, // `drain` is the polite part
    return503OnClosing: false, // ours has the right shape
    exposeHeadRoutes: false,
    genReqId: ({ headers }) => requestId(headers["x-request-id"]),
    clientErrorHandler: answerBadHttp,
    frameworkErrors: (error, request, reply) => void answerBadUrl(error, request, reply, obs),
    routerOptions: { maxParamLength: MOST_ID_CHARACTERS },
    schemaController: { compilersFactory: noSchemas },
  });
  app.server.maxConnections = MOST_CONNECTIONS;
  return app;
}

/**
 * Requests are checked by our own schemas and answers are plain JSON. Told so, Fastify loads neither its validator nor
 * its serialiser: 10 ms of a start.
 */
const noSchemas = {
  buildValidator: (): never => {
    throw new Error("routes have no Fastify schemas");
  },
  buildSerializer: (): never => {
    throw new Error("routes have no Fastify schemas");
  },
};

/** A caller's own id, where it is harmless in a log, joins its records with ours. */
const requestId = (sent: string | string[] | undefined): string =>
  typeof sent === "string" && REQUEST_ID.test(sent) ? sent : randomUUID();

function refuseStrangers(door: Extract<Door, { kind: "tcp" }>, request: FastifyRequest): void {
  const problem = originProblem(door, request.headers);
  if (problem !== null) throw new BeamclawError("foreign_origin", problem);
}

/** Loaded only where it is configured. */
function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  app.register(import("@fastify/cors"), {
    origin: origins.includes("*") ? "*" : [...origins],
    methods: ["GET", "POST", "DELETE"],
    exposedHeaders: ["x-run-id", "x-session-id", "x-approval-id", "x-request-id", "retry-after"],
    strictPreflight: false,
    maxAge: 600,
  });
}

function mount(app: FastifyInstance, route: Route, gate: Gate, traffic: Traffic): void {
  const { method, url, scopes, handle } = route;
  app.route({
    method,
    url,
    exposeHeadRoute: scopes === null,
    onRequest: (request, _reply, done) => {
      if (route.refusedWhileDraining === true) traffic.refuseNewWork();
      if (scopes !== null) request.caller = gate(request, scopes);
      done();
    },
    handler: handle,
  });
}
