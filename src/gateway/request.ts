import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { lazily } from "../kernel/lazily.ts";
import type { Principal } from "../domain/ids.ts";
import { anonymousCaller, type Caller, isAdmin, type Self } from "./caller.ts";
import { identify } from "./identity.ts";
import type { IdentityRules } from "./ports.ts";
import { parse } from "./validation.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Who sent it; nobody on public routes. Set before the body is read. */
    caller: Caller | null;
    /** The bytes of the body, kept only where an Idempotency-Key needs their hash. */
    rawBody: Buffer | null;
  }
}

export const callerOf = (request: FastifyRequest): Caller => request.caller ?? anonymousCaller;

const EMPTY = Buffer.alloc(0);

export const rawBodyOf = (request: FastifyRequest): Buffer => request.rawBody ?? EMPTY;

/** A header's text, or null where it is absent or empty. Bytes that are UTF-8 are read as such. */
export function headerText(request: FastifyRequest, name: string): string | null {
  const value = request.headers[name];
  const text = (Array.isArray(value) ? value[0] : value)?.trim();
  if (text === undefined || text === "") return null;
  return isAscii(text) ? text : utf8Of(text);
}

const isAscii = (text: string): boolean => !/[\x80-\uffff]/.test(text);

/** Node reads header bytes as Latin-1; a person's name in a header is nearly always UTF-8. */
function utf8Of(latin1: string): string {
  const bytes = Buffer.from(latin1, "latin1");
  const text = bytes.toString("utf8");
  return text.includes("\ufffd") ? latin1 : text;
}

const userQuery = lazily(() => z.object({ user_id: z.string().optional() }));
const idParams = lazily(() => z.object({ id: z.string().min(1).max(128) }));

export const idOf = (request: FastifyRequest): string => parse(idParams, request.params).id;

/** Whom a request that reads or steers acts as. */
export function selfOf(rules: IdentityRules, request: FastifyRequest): Self {
  return identify(rules, callerOf(request), userOf(request));
}

/**
 * Whose things a list shows: the named person's or, for those who reach everybody (`admin`, and `everybody`),
 * all if no person is named.
 */
export function principalFilter(
  rules: IdentityRules,
  request: FastifyRequest,
  everybody = isAdmin(callerOf(request)),
): { readonly principal?: Principal } {
  if (everybody && userOf(request) === null) return {};
  return { principal: selfOf(rules, request).principal };
}

const userOf = (request: FastifyRequest): string | null =>
  headerText(request, "x-user-id") ?? (parse(userQuery, request.query).user_id || null);
