/** The rules of outgoing requests that need nothing but the URL: scheme, credentials, host and port. */
import { domainToASCII } from "node:url";

export interface EgressPolicy {
  /** If not empty, the only hosts. `example.com`, `*.example.com` (its subdomains), either with `:port`. */
  readonly allow: readonly string[];
  /** Stronger than `allow`; same forms. */
  readonly deny: readonly string[];
  /** Ports that may be used; an `allow` entry with a port adds that port for its host. */
  readonly ports: readonly number[];
  /** Whether loopback and local networks may be reached. */
  readonly allowPrivate: boolean;
}

export type Target =
  { readonly kind: "target"; readonly url: URL } | { readonly kind: "refused"; readonly message: string };

/** Checks `text`, which may be relative to `base`. The address behind the name is checked later. */
export function checkTarget(text: string, policy: EgressPolicy, base?: URL): Target {
  const url = URL.parse(text, base?.href);
  if (url === null)
    return refused(`\`${text.slice(0, 200)}\` is not a URL; give one such as https://example.com/`);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return refused(`${url.protocol} URLs are not reachable; use http or https`);
  }
  if (url.username !== "" || url.password !== "") {
    return refused("a URL may not hold credentials; send an Authorization header");
  }
  const host = hostOf(url);
  const port = portOf(url);
  if (policy.deny.some((pattern) => covers(pattern, host, port))) {
    return refused(`${host} is on the list tools.http.deny`);
  }
  const allowed = policy.allow.filter((pattern) => covers(pattern, host, port));
  if (policy.allow.length > 0 && allowed.length === 0) {
    return refused(`${host}:${port} is not on the list tools.http.allow`);
  }
  if (!policy.ports.includes(port) && !allowed.some((pattern) => splitPort(pattern).port === port)) {
    return refused(`port ${port} is not on the list tools.http.ports`);
  }
  return { kind: "target", url };
}

/** Without brackets and without the dot of a fully qualified name. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");

const portOf = (url: URL): number => {
  if (url.port !== "") return Number(url.port);
  return url.protocol === "https:" ? 443 : 80;
};

function covers(pattern: string, host: string, port: number): boolean {
  const wanted = splitPort(pattern);
  if (wanted.port !== null && wanted.port !== port) return false;
  if (wanted.host.startsWith("*.")) return host.endsWith(`.${canonical(wanted.host.slice(2))}`);
  return host === canonical(wanted.host);
}

/** `[::1]:80`, `host:80`, `host`, `::1`. */
function splitPort(pattern: string): { readonly host: string; readonly port: number | null } {
  const match = /^(?:\[(?<v6>[^\]]+)\]|(?<name>[^:]+))(?::(?<port>\d+))?$/.exec(pattern);
  const host = match?.groups?.["v6"] ?? match?.groups?.["name"] ?? pattern;
  const port = match?.groups?.["port"];
  return { host, port: port === undefined ? null : Number(port) };
}

/** Host names as a URL holds them: lower case, ASCII. An IPv6 address is left as it is. */
const canonical = (host: string): string =>
  host.includes(":") ? host.toLowerCase() : domainToASCII(host).replace(/\.$/, "");

const refused = (message: string): Target => ({ kind: "refused", message });
