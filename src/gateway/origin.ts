import type { IncomingHttpHeaders } from "node:http";
import type { Door } from "./ports.ts";
import { isLoopback } from "./rate-limit.ts";

/**
 * Keeps browsers of strangers out. A page that rebinds its own name to 127.0.0.1 arrives with that name in
 * `Host`; a page that calls us directly arrives with its `Origin`. Returns what is wrong, or null.
 */
export function originProblem(
  door: Extract<Door, { kind: "tcp" }>,
  headers: IncomingHttpHeaders,
): string | null {
  const host = headers.host;
  if (door.loopback && host !== undefined && !isLocalHost(door, hostName(host))) {
    return "the Host header names another machine";
  }
  const origin = headers.origin;
  if (origin === undefined || allowsOrigin(door.corsOrigins, origin)) return null;
  if (host !== undefined && (origin === `http://${host}` || origin === `https://${host}`)) return null;
  return "a page of this origin may not call";
}

export const allowsOrigin = (origins: readonly string[], origin: string): boolean =>
  origins.includes("*") || origins.includes(origin);

function isLocalHost(door: Extract<Door, { kind: "tcp" }>, name: string): boolean {
  return name === "localhost" || isLoopback(name) || door.hosts.includes(name);
}

/** The name of a Host header: port and the brackets of IPv6 removed, lower case. */
function hostName(host: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d*)?$/.exec(host);
  return (bracketed?.[1] ?? host.replace(/:\d*$/, "")).toLowerCase();
}
