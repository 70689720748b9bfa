import type { FastifyRequest } from "fastify";
import { BeamclawError } from "../domain/error-catalogue.ts";
import type { Clock } from "../kernel/clock.ts";
import { type Caller, isOwner, localCaller, may, type Scope } from "./caller.ts";
import type { Door } from "./ports.ts";
import { addressBucket, isLoopback, SlidingWindow } from "./rate-limit.ts";
import type { TokenBook } from "./tokens.ts";

/** Lets a request in that has one of the scopes, or throws `unauthorized`, `forbidden` or `rate_limited`. */
export type Gate = (request: FastifyRequest, scopes: readonly Scope[]) => Caller;

/** The local socket: whoever can open the file is the owner. */
export const localGate: Gate = () => localCaller;

/**
 * Bearer tokens and the limits of their use. Limits count per token; addresses count only failed attempts, and
 * an address with too many of them is refused before its token is looked at, so that guessing is slow.
 */
export function tokenGate(door: Extract<Door, { kind: "tcp" }>, tokens: TokenBook, clock: Clock): Gate {
  const perToken = new SlidingWindow(door.rateLimit, clock);
  const failures = new SlidingWindow(door.rateLimit, clock);
  const { limitLocal } = door.rateLimit;

  return (request, scopes) => {
    const direct = !limitLocal && isDirectLoopback(request);
    const bucket = direct ? "" : addressBucket(request.ip);
    if (!direct) refuseIf(failures.peek(bucket), "too many failed attempts from this address");
    const caller = findCaller(tokens, request.headers.authorization);
    if (caller === null) {
      if (!direct) failures.take(bucket);
      throw new BeamclawError("unauthorized", reasonOf(request.headers.authorization));
    }
    const exempt = direct || (!limitLocal && isOwner(caller));
    if (!exempt) refuseIf(perToken.take(caller.token ?? ""), "too many requests with this token");
    if (!scopes.some((scope) => may(caller, scope))) {
      throw new BeamclawError("forbidden", `the token lacks the scope ${scopes.join(" or ")}`);
    }
    return caller;
  };
}

/** A loopback peer that forwards for others is a proxy, not a local person: it is not exempt. */
function isDirectLoopback({ headers, ip }: FastifyRequest): boolean {
  const forwarded = headers["x-forwarded-for"] !== undefined || headers.forwarded !== undefined;
  return !forwarded && isLoopback(ip);
}

function findCaller(tokens: TokenBook, authorization: string | undefined): Caller | null {
  const secret = /^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
  return secret === undefined ? null : tokens.find(secret);
}

const reasonOf = (authorization: string | undefined): string =>
  authorization === undefined ? "no token was sent" : "the token is unknown, expired or revoked";

function refuseIf(waitSeconds: number, message: string): void {
  if (waitSeconds > 0) {
    throw new BeamclawError("rate_limited", message, { retryAfterSeconds: waitSeconds });
  }
}
