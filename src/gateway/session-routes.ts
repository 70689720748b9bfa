import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { lazily } from "../kernel/lazily.ts";
import { BeamclawError } from "../domain/error-catalogue.ts";
import { type AgentName, isAgentName } from "../domain/ids.ts";
import type { Session } from "../store/ports.ts";
import { mayUse, reaches } from "./caller.ts";
import { invalid, notFound } from "./errors.ts";
import { resolveSession } from "./identity.ts";
import { historyQuery, pageOf, pageQuery } from "./query.ts";
import { callerOf, idOf, principalFilter, selfOf } from "./request.ts";
import type { Route, RouteDeps } from "./route.ts";
import { parse } from "./validation.ts";
import { messageView, pageView, sessionView } from "./views.ts";

const listQuery = lazily(() => z.object(pageQuery()));
const agentQuery = lazily(() => z.object({ agent_id: z.string().optional() }));

export function sessionRoutes(deps: RouteDeps): readonly Route[] {
  const { store, conversations, rules } = deps;
  return [
    {
      method: "GET",
      url: "/v1/sessions",
      scopes: ["chat"],
      handle: async (request) => {
        const page = pageOf(parse(listQuery, request.query));
        const found = await store.sessions.list({ ...principalFilter(rules, request), page });
        const data = found.data.filter((session) => mayUse(callerOf(request), session.agent));
        return pageView({ ...found, data }, sessionView);
      },
    },
    {
      method: "GET",
      url: "/v1/sessions/:id",
      scopes: ["chat"],
      handle: async (request) => sessionView(await findSession(deps, request)),
    },
    {
      method: "GET",
      url: "/v1/sessions/:id/messages",
      scopes: ["chat"],
      handle: async (request) => {
        const { cursor, limit } = parse(historyQuery, request.query);
        const session = await findSession(deps, request);
        const messages = await store.sessions.messages(session.id, cursor, limit);
        const last = messages.length < limit ? undefined : messages.at(-1);
        const nextCursor = last === undefined ? null : String(last.seq);
        return pageView({ data: messages, nextCursor }, (message) => messageView(session, message));
      },
    },
    {
      method: "DELETE",
      url: "/v1/sessions/:id",
      scopes: ["chat"],
      handle: async (request) => {
        const { id } = await findSession(deps, request);
        refuse(await store.sessions.delete(id));
        return { id, deleted: true };
      },
    },
    {
      method: "POST",
      url: "/v1/sessions/:id/reset",
      scopes: ["chat"],
      handle: async (request) => {
        const { id } = await findSession(deps, request);
        refuse(await conversations.reset(id));
        return { id, reset: true };
      },
    },
  ];
}

/** The session that the path names by id or by the caller's own name; 404 for somebody else's. */
async function findSession(deps: RouteDeps, request: FastifyRequest): Promise<Session> {
  const caller = callerOf(request);
  const self = selfOf(deps.rules, request);
  const agent = caller.agent ?? agentOf(request) ?? deps.rules.defaultAgent;
  const { sessionId } = await resolveSession(deps, caller, { ...self, agent }, idOf(request));
  const session: Session | null = await deps.store.sessions.get(sessionId);
  if (session === null || !reaches(caller, self, session)) throw notFound("session");
  return session;
}

/** A session's name belongs to one agent; `?agent_id=` says which where it is not the default. */
function agentOf(request: FastifyRequest): AgentName | null {
  const { agent_id: name } = parse(agentQuery, request.query);
  if (name === undefined || name === "") return null;
  if (!isAgentName(name)) throw invalid("agent_id", "is not an agent's name");
  return name;
}

function refuse(outcome: "deleted" | "reset" | "not_found" | "session_busy"): void {
  if (outcome === "not_found") throw notFound("session");
  if (outcome === "session_busy") throw new BeamclawError("session_busy", "the session has an open run");
}
