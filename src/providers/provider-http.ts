import { randomBytes } from "node:crypto";

/* What all calls to model APIs have in common, before there is a call. */

/** `baseUrl` with `path` appended to its own path. */
export function endpoint(baseUrl: string, path: string): URL {
  const url = new URL(baseUrl);
  url.pathname = url.pathname.replace(/\/+$/, "") + path;
  return url;
}

/** The constant headers of a JSON call that wants a stream. */
export function requestHeaders(
  own: Readonly<Record<string, string>>,
  extra: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const lower = Object.entries(extra).map(([name, value]) => [name.toLowerCase(), value] as const);
  return {
    "content-type": "application/json",
    accept: "text/event-stream, application/json",
    "user-agent": "beamclaw",
    ...own,
    ...Object.fromEntries(lower),
  };
}

/** W3C Trace Context §3.2: the run's trace id with a span of its own; nothing where the id is not one. */
export function traceHeader(traceId: string): Readonly<Record<string, string>> {
  if (!/^(?!0{32})[0-9a-f]{32}$/.test(traceId)) return {};
  return { traceparent: `00-${traceId}-${randomBytes(8).toString("hex")}-01` };
}
