import { hash, randomUUID } from "node:crypto";

declare const brand: unique symbol;
type Brand<Name extends string> = string & { readonly [brand]: Name };

export type RunId = Brand<"RunId">;
export type SessionId = Brand<"SessionId">;
export type MessageId = Brand<"MessageId">;
export type ApprovalId = Brand<"ApprovalId">;
export type AttachmentId = Brand<"AttachmentId">;
/** Who is talking, for instance `local:alice`, `api:web/bob`, or the canonical `BEAMCLAW_USER`. */
export type Principal = Brand<"Principal">;
/** Matches `AGENT_NAME`. */
export type AgentName = Brand<"AgentName">;

export const AGENT_NAME = /^[a-z0-9_-]{1,64}$/;

export const isAgentName = (text: string): text is AgentName => AGENT_NAME.test(text);

/** Marks text from a trusted place (the store, the router's own parsing) as an id of kind `T`. */
export const asId = <T extends string>(text: string): T => text as T;

/** A new time-ordered id: UUIDv7 (RFC 9562 §5.7), `now` in milliseconds since the epoch. */
export function newId<T extends string>(now: number): T {
  const time = now.toString(16).padStart(12, "0");
  // Node keeps random bytes for `randomUUID` in stock; its variant and random bits stay, version and time are ours.
  return asId<T>(`${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`);
}

/**
 * The session of a principal with an agent. `channel` is given only where sessions are kept apart per
 * channel. Agent names and channel tags hold no colon, so the joined text parses uniquely from the right.
 */
export function deriveSessionId(principal: Principal, agent: AgentName, channel?: string): SessionId {
  const text = channel === undefined ? `${principal}:${agent}` : `${principal}:${agent}:${channel}`;
  return asId<SessionId>(`session-${hash("sha256", text).slice(0, 32)}`);
}
