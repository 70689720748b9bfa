import { randomUUID } from "node:crypto";
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { BeamclawError } from "../domain/error-catalogue.ts";
import { toError } from "../kernel/errors.ts";
import { classify, httpError, speaksOpenAi } from "./errors.ts";
import type { GatewayObs } from "./ports.ts";
import { callerOf } from "./request.ts";
import type { Route } from "./route.ts";

const JSON_TYPE = "application/json; charset=utf-8";

/** Every refusal and failure leaves through here, in the shape that its path speaks. */
export function installErrorReplies(app: FastifyInstance, obs: GatewayObs, routes: readonly Route[]): void {
  const allowed = methodTable(routes);
  app.setErrorHandler((thrown, request, reply) => {
    const error = classify(thrown);
    if (error.code === "internal") obs.defect(toError(error.cause ?? error), request.id);
    return sendError(reply, request, error, obs);
  });
  app.setNotFoundHandler((request, reply) => {
    const methods = allowed(pathOf(request));
    if (methods === null)
      return sendError(reply, request, new BeamclawError("not_found", "no such route"), obs);
    reply.header("allow", methods);
    const message = `the route does not take ${request.method}`;
    return sendError(reply, request, new BeamclawError("method_not_allowed", message), obs);
  });
}

function sendError(reply: FastifyReply, request: FastifyRequest, error: BeamclawError, obs: GatewayObs) {
  const { status, body, retryAfterSeconds } = httpError(error, speaksOpenAi(pathOf(request)));
  if (retryAfterSeconds !== null) reply.header("retry-after", retryAfterSeconds);
  if (status === 401) reply.header("www-authenticate", "Bearer");
  if (status === 401 || status === 403 || status === 429) {
    const { token } = callerOf(request);
    obs.requestRefused({ requestId: request.id, code: error.code, address: request.ip, token });
  }
  return reply.code(status).type(JSON_TYPE).send(body);
}

/** For paths that the router cannot read: no hook has seen such a request, so nothing has been set yet. */
export function answerBadUrl(thrown: unknown, request: FastifyRequest, reply: FastifyReply, obs: GatewayObs) {
  return sendError(reply.header("x-request-id", request.id), request, classify(thrown), obs);
}

const pathOf = (request: FastifyRequest): string => request.url.split("?", 1)[0] ?? "";

/** The Allow header of a path that some route serves, or null. Only looked at when no route matched. */
function methodTable(routes: readonly Route[]): (path: string) => string | null {
  const patterns = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>();
  for (const { url, method, scopes } of routes) {
    const source = url.replace(/[.*+?^${}()|[\]\\]/g, (special) => (special === "*" ? ".+" : `\\${special}`));
    const entry = patterns.get(url) ?? {
      pattern: new RegExp(`^${source.replace(/:\w+/g, "[^/]+")}$`),
      methods: new Set<string>(),
    };
    entry.methods.add(method);
    if (scopes === null) entry.methods.add("HEAD");
    patterns.set(url, entry);
  }
  return (path) => {
    for (const { pattern, methods } of patterns.values()) {
      if (pattern.test(path)) return [...methods].join(", ");
    }
    return null;
  };
}

/** Answers what is not HTTP well enough to become a request, and closes the connection. */
export function answerBadHttp(error: Error & { readonly code?: string }, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = badHttpStatus(error.code);
  const body = JSON.stringify({ error: "the request is not valid HTTP", code: "invalid_request" });
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `content-type: ${JSON_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${randomUUID()}`,
    "connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}

function badHttpStatus(code: string | undefined): number {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return 408;
  return code === "HPE_HEADER_OVERFLOW" ? 431 : 400;
}
