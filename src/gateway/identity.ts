import { hash } from "node:crypto";
import { BeamclawError } from "../domain/error-catalogue.ts";
import {
  type AgentName,
  asId,
  deriveSessionId,
  isAgentName,
  type Principal,
  type SessionId,
} from "../domain/ids.ts";
import { type Caller, isAdmin, may, mayUse, reaches, type Self } from "./caller.ts";
import { invalid, notFound } from "./errors.ts";
import type { AgentDirectory, GatewayStore, IdentityRules } from "./ports.ts";

/** What a request says about whom and what it is for; null where it says nothing. */
export interface Naming {
  readonly user: string | null;
  /** A session's id or name; `none` asks for a stateless run. */
  readonly session: string | null;
  readonly agent: string | null;
}

/** Where a chat request belongs. `sessionId` is null for a stateless one. */
export interface Conversation {
  readonly sessionId: SessionId | null;
  readonly principal: Principal;
  readonly agent: AgentName;
}

/** The principal of a person who is not named. */
const ANONYMOUS = "anonymous";
const USER = /^[^\p{Cc}\p{Zl}\p{Zp}]{1,256}$/u;
const SESSION = /^[\x21-\x7e]{1,128}$/;
/** What stateless runs show as their session; nothing can be added to it. */
const STATELESS_ID = "ephemeral-";
/** Ids that `deriveSessionId` makes; a client has them from `x-session-id`. */
const DERIVED_ID = /^session-[0-9a-f]{32}$/;

/** `BEAMCLAW_USER` as a principal. Empty or blank is unset: it must not merge everybody into one. */
export function canonicalUser(setting: string | undefined): Principal | null {
  const text = setting?.trim() ?? "";
  return text === "" ? null : asId<Principal>(text);
}

/**
 * Whom a caller acts as. Tokens without `impersonate` get a name space of their own, so that no user name of
 * theirs can be mistaken for another's: token names hold no slash.
 */
export function identify(rules: IdentityRules, caller: Caller, user: string | null): Self {
  if (user !== null && !USER.test(user))
    throw invalid("user_id", "1 to 256 characters, none of them a control");
  const free = may(caller, "impersonate");
  if (free && rules.canonicalUser !== null) return { principal: rules.canonicalUser, realm: null };
  if (free && user === null && caller.door === "local") {
    return { principal: asId<Principal>(`local:${rules.localUser}`), realm: null };
  }
  if (free) return { principal: asId<Principal>(`api:${user ?? ANONYMOUS}`), realm: null };
  const realm = `api:${caller.token}/`;
  return { principal: asId<Principal>(realm + (user ?? ANONYMOUS)), realm: user === null ? realm : null };
}

/** Finds where a chat request belongs. Throws what the caller did wrong: 400, 403 or 404. */
export async function resolveConversation(
  deps: { readonly rules: IdentityRules; readonly agents: AgentDirectory; readonly store: GatewayStore },
  caller: Caller,
  naming: Naming,
): Promise<Conversation> {
  const { rules, agents, store } = deps;
  const self = identify(rules, caller, naming.user);
  const { principal } = self;
  const agent = chooseAgent(rules, agents, caller, naming.agent);
  if (naming.session === "none") return { sessionId: null, principal, agent };
  if (naming.session !== null) {
    const found = await resolveSession({ rules, store }, caller, { ...self, agent }, naming.session);
    if (naming.agent !== null && found.agent !== agent) {
      throw invalid("model", `the session belongs to the agent ${found.agent}`);
    }
    return found;
  }
  // A canonical user names a person only for those whose identity it replaces.
  const person = naming.user !== null || (rules.canonicalUser !== null && may(caller, "impersonate"));
  if (!person) return { sessionId: null, principal, agent };
  return { sessionId: personalSessionId(rules, principal, agent), principal, agent };
}

/** The agent of a request that names one, or none. */
function chooseAgent(
  rules: IdentityRules,
  agents: AgentDirectory,
  caller: Caller,
  named: string | null,
): AgentName {
  const name = named ?? caller.agent ?? rules.defaultAgent;
  if (!isAgentName(name) || !agents.exists(name)) {
    throw new BeamclawError("agent_not_found", `no agent named ${name.slice(0, 64)}`, { param: "model" });
  }
  if (!mayUse(caller, name)) {
    throw new BeamclawError("forbidden", `the token is restricted to the agent ${caller.agent}`);
  }
  return name;
}

/**
 * The conversation behind a session's id or name. Callers with `admin` name ids verbatim and join whatever is
 * there. For all others a name is private to their principal, and an id of somebody else's session is not found.
 */
export async function resolveSession(
  deps: { readonly rules: IdentityRules; readonly store: GatewayStore },
  caller: Caller,
  self: Self & { readonly agent: AgentName },
  text: string,
): Promise<Conversation & { readonly sessionId: SessionId }> {
  if (!SESSION.test(text)) throw invalid("session_id", "1 to 128 printable ASCII characters without spaces");
  if (text.startsWith(STATELESS_ID)) throw notFound("session (a stateless run leaves none)");
  const { principal, agent } = self;
  if (!isAdmin(caller) && !DERIVED_ID.test(text)) {
    return { sessionId: namedSessionId(principal, agent, text), principal, agent };
  }
  const sessionId = asId<SessionId>(text);
  const session = await deps.store.sessions.get(sessionId);
  if (session === null) {
    // A person's own session, not yet begun, may be named by its id; any other id would be a guess.
    const own = sessionId === personalSessionId(deps.rules, principal, agent);
    if (!own && !isAdmin(caller)) throw notFound("session");
    return { sessionId, principal, agent };
  }
  if (!reaches(caller, self, session)) throw notFound("session");
  return { sessionId, principal: session.principal, agent: session.agent };
}

/** The one session of a person with an agent (over HTTP, where channels are kept apart). */
const personalSessionId = (rules: IdentityRules, principal: Principal, agent: AgentName): SessionId =>
  deriveSessionId(principal, agent, rules.sharing === "per_channel" ? "http" : undefined);

/** A name's session. The separator is a control character, which no user name, agent or session name holds. */
function namedSessionId(principal: Principal, agent: AgentName, name: string): SessionId {
  const text = [principal, agent, name].join("\u0000");
  return asId<SessionId>(`session-${hash("sha256", text).slice(0, 32)}`);
}
