import type { AgentName, Principal } from "../domain/ids.ts";

/** What a token may do. `admin` includes all others; `owner` is the first token's, which is not limited either. */
export const scopes = ["chat", "tools", "metrics", "approvals", "impersonate", "admin", "owner"] as const;
export type Scope = (typeof scopes)[number];

export const isScope = (text: string): text is Scope => scopes.some((scope) => scope === text);

/** Who sent a request, as far as its connection and token say; the person is in the principal. */
export interface Caller {
  readonly door: "local" | "token";
  /** Name of the token; null on the local socket. */
  readonly token: string | null;
  readonly scopes: ReadonlySet<Scope>;
  /** The agent that the token is restricted to. */
  readonly agent: AgentName | null;
}

/** The local socket: its file mode has let the owner in. */
export const localCaller: Caller = { door: "local", token: null, scopes: new Set(["owner"]), agent: null };

/** Nobody: the caller of a public route. */
export const anonymousCaller: Caller = { door: "token", token: null, scopes: new Set(), agent: null };

export const isOwner = (caller: Caller): boolean => caller.scopes.has("owner");

export const isAdmin = (caller: Caller): boolean => caller.scopes.has("admin") || caller.scopes.has("owner");

export const may = (caller: Caller, scope: Scope): boolean => caller.scopes.has(scope) || isAdmin(caller);

/** Whether the token's restriction leaves this agent to it. */
export const mayUse = (caller: Caller, agent: AgentName): boolean =>
  caller.agent === null || caller.agent === agent;

/** Whom a caller acts as in one request. */
export interface Self {
  readonly principal: Principal;
  /**
   * Where the request names no user: the name space of the token's own users, so that a session's id alone leads
   * back to the session. Null where it names one, or could name anybody: then only that person's things exist.
   */
  readonly realm: string | null;
}

/** Whether something that belongs to a principal and an agent exists for a caller; if not, it is not found. */
export function reaches(
  caller: Caller,
  self: Self,
  thing: { readonly principal: Principal; readonly agent: AgentName },
): boolean {
  if (!mayUse(caller, thing.agent)) return false;
  if (isAdmin(caller) || thing.principal === self.principal) return true;
  return self.realm !== null && thing.principal.startsWith(self.realm);
}
