/**
 * The one way out for tools. Every hop of a request, redirects included, is: check the URL, resolve the name
 * once, check every address, connect to exactly those addresses. There is no second look-up that could answer
 * differently, and no pooled connection from an earlier decision.
 */
import { lookup } from "node:dns/promises";
import type { LookupFunction } from "node:net";
import type { Dispatcher } from "undici";
import type { Clock } from "../kernel/clock.ts";
import { classifyAddress } from "./address.ts";
import { Deadline, orAbort } from "./deadline.ts";
import { checkTarget, type EgressPolicy, hostOf } from "./egress-policy.ts";
import { type Body, readBody } from "./response-body.ts";

export interface EgressRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

export type EgressOutcome =
  | { readonly kind: "answered"; readonly status: number; readonly url: string; readonly body: Body }
  /** A rule forbids it; nothing was sent to the place in question. */
  | { readonly kind: "refused"; readonly message: string }
  /** The network, the server or the time limit. */
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "cancelled" };

export interface ResolvedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Looks a host name up. Rejects where there is no answer. */
export type Resolve = (hostname: string) => Promise<readonly ResolvedAddress[]>;

export interface EgressOptions {
  readonly policy: EgressPolicy;
  readonly clock: Clock;
  /** The whole request, redirects and body included. */
  readonly timeoutMs: number;
  /** Bytes of the decoded body that are kept. */
  readonly maxBodyBytes: number;
  /** The system's resolver unless given. */
  readonly resolve?: Resolve;
}

const CONNECT_TIMEOUT_MS = 10_000;
const MAX_REDIRECTS = 5;
const MAX_HEADER_BYTES = 32_768;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Set by the client itself, or able to name another host than the one that was checked. */
const FORBIDDEN_HEADERS =
  /^(host|connection|content-length|transfer-encoding|keep-alive|upgrade|te|trailer|expect|proxy-.*|:.*)$/i;
/** What may follow to another origin; everything else could be a credential. */
const PORTABLE_HEADERS = /^(accept|accept-language|user-agent)$/i;

/** A request as one hop sends it. */
interface Hop {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

type HopOutcome = EgressOutcome | { readonly kind: "redirected"; readonly to: Hop };

export class Egress {
  readonly #options: EgressOptions;
  readonly #resolve: Resolve;

  constructor(options: EgressOptions) {
    this.#options = options;
    this.#resolve = options.resolve ?? systemResolve;
  }

  /** Never rejects. Holds no connection when it has resolved. */
  async request(request: EgressRequest): Promise<EgressOutcome> {
    const { policy, clock, timeoutMs } = this.#options;
    const header = Object.keys(request.headers).find((name) => FORBIDDEN_HEADERS.test(name));
    if (header !== undefined) return refused(`the header ${header.slice(0, 40)} cannot be set; leave it out`);
    const target = checkTarget(request.url, policy);
    if (target.kind === "refused") return target;
    using deadline = new Deadline(clock, timeoutMs, request.signal);
    try {
      const { method, headers, body } = request;
      return await this.#follow({ url: target.url, method, headers, body }, deadline.signal);
    } catch (thrown) {
      if (deadline.expired) return failedWith(`no complete answer within ${timeoutMs / 1000} s`);
      return request.signal.aborted ? { kind: "cancelled" } : failedWith(describe(thrown));
    }
  }

  async #follow(first: Hop, signal: AbortSignal): Promise<EgressOutcome> {
    let hop = first;
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      const outcome = await this.#hop(hop, signal);
      if (outcome.kind !== "redirected") return outcome;
      hop = outcome.to;
    }
    return failedWith(`more than ${MAX_REDIRECTS} redirects`);
  }

  async #hop(hop: Hop, signal: AbortSignal): Promise<HopOutcome> {
    const host = hostOf(hop.url);
    const addresses = await orAbort(this.#resolve(host), signal);
    const refusal = this.#refuse(host, addresses);
    if (refusal !== null) return refusal;
    const { Client } = (await import("undici")).default; // with the first call: it is most of what a start would cost
    const client = new Client(hop.url.origin, {
      connect: { lookup: pinnedTo(addresses), timeout: CONNECT_TIMEOUT_MS, autoSelectFamily: true },
      allowH2: false,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: 0, // the deadline of the whole request is the shorter one
      bodyTimeout: 0,
    });
    try {
      const response = await client.request(toOptions(hop, signal));
      return await this.#answer(hop, response);
    } finally {
      await client.destroy();
    }
  }

  async #answer(hop: Hop, response: Dispatcher.ResponseData): Promise<HopOutcome> {
    const location = response.headers["location"];
    if (REDIRECTS.has(response.statusCode) && typeof location === "string") {
      response.body.on("error", () => {}).destroy(); // its content is of no interest
      return redirect(hop, response.statusCode, location, this.#options.policy);
    }
    const body = await readBody(response.body, response.headers, this.#options.maxBodyBytes);
    return { kind: "answered", status: response.statusCode, url: hop.url.href, body };
  }

  /** One bad address spoils all: which one the connection would take is not ours to say. */
  #refuse(host: string, addresses: readonly ResolvedAddress[]): EgressOutcome | null {
    if (addresses.length === 0) return failedWith(`${host} has no address`);
    for (const { address } of addresses) {
      const kind = classifyAddress(address);
      if (kind === "public" || (kind === "private" && this.#options.policy.allowPrivate)) continue;
      const cure = kind === "private" ? "; tools.http.allowPrivate would permit it" : "";
      return refused(`${host} leads to ${address}, which is not a public address${cure}`);
    }
    return null;
  }
}

const systemResolve: Resolve = async (hostname) => {
  const found = await lookup(hostname, { all: true });
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
};

/** Answers every look-up of the connection with the addresses that were checked. */
function pinnedTo(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_hostname, options, callback) => {
    const [first] = addresses;
    if (options.all === true) callback(null, [...addresses]);
    else callback(null, first?.address ?? "", first?.family);
  };
}

function toOptions(hop: Hop, signal: AbortSignal): Dispatcher.RequestOptions {
  return {
    path: `${hop.url.pathname}${hop.url.search}`,
    method: hop.method,
    headers: {
      "user-agent": "beamclaw",
      accept: "*/*",
      "accept-encoding": "gzip, br",
      ...lowerCased(hop.headers),
    },
    body: hop.body ?? null,
    reset: true,
    signal,
  };
}

const lowerCased = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

/**
 * RFC 9110 §15.4: 303, and 301 or 302 after a POST, continue as GET. A request that still has an effect does not
 * follow to another origin, because nobody has approved that one.
 */
function redirect(from: Hop, status: number, location: string, policy: EgressPolicy): HopOutcome {
  const target = checkTarget(location, policy, from.url);
  if (target.kind === "refused") return refused(`redirected, but ${target.message}`);
  const toGet = status === 303 || (status <= 302 && from.method === "POST");
  const method = toGet ? "GET" : from.method;
  const sameOrigin = target.url.origin === from.url.origin;
  if (!sameOrigin && method !== "GET") {
    return refused(
      `redirected to ${target.url.origin}; if that is intended, send the ${method} there yourself`,
    );
  }
  const kept = Object.entries(from.headers).filter(([name]) => {
    if (toGet && /^content-/i.test(name)) return false;
    return sameOrigin || PORTABLE_HEADERS.test(name);
  });
  const body = toGet ? undefined : from.body;
  return { kind: "redirected", to: { url: target.url, method, headers: Object.fromEntries(kept), body } };
}

/** The code says more to a model than the message, and holds no address or path of ours. */
function describe(thrown: unknown): string {
  if (!(thrown instanceof Error)) return "the request failed";
  const code = "code" in thrown && typeof thrown.code === "string" ? ` (${thrown.code})` : "";
  return `${thrown.message.slice(0, 200)}${code}`;
}

const refused = (message: string): { readonly kind: "refused"; readonly message: string } => ({
  kind: "refused",
  message,
});

const failedWith = (message: string): EgressOutcome => ({ kind: "failed", message });
