import type { FastifyReply, FastifyRequest } from "fastify";
import type { Scope } from "./caller.ts";
import type { GatewayDeps, IdentityRules } from "./ports.ts";

/** Sends the answer itself and returns the reply, or returns a value that goes out as JSON. */
export type RouteHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

export interface Route {
  readonly method: "GET" | "POST" | "DELETE";
  /** Fastify's pattern: `/v1/runs/:id`. */
  readonly url: string;
  /** A token needs one of these; null for a route that everybody may call. */
  readonly scopes: readonly Scope[] | null;
  /** Starts work or stays open: refused while the gateway drains. */
  readonly refusedWhileDraining?: boolean;
  readonly handle: RouteHandler;
}

/** What routes work with, beside their request. */
export interface RouteDeps extends GatewayDeps {
  readonly rules: IdentityRules;
  /** Aborts when the gateway drains. */
  readonly draining: AbortSignal;
}
