/** Which network addresses tools may talk to. Sources: the IANA special-purpose address registries. */
import ipaddr from "ipaddr.js";

/**
 * `public` is the open internet, `private` what an operator may open up (loopback, local networks);
 * `forbidden` is never reached: cloud metadata and other link-local services, multicast, broadcast, reserved
 * ranges, and forms that hide another address (NAT64, 6to4, Teredo).
 */
export type AddressKind = "public" | "private" | "forbidden";

const PRIVATE_RANGES: ReadonlySet<string> = new Set([
  "loopback",
  "private",
  "uniqueLocal",
  "carrierGradeNat",
]);

/** Metadata services outside the link-local range: Azure's wire server, Alibaba's, Amazon's over IPv6. */
const METADATA: ReadonlySet<string> = new Set(["168.63.129.16", "100.100.100.200", "fd00:ec2::254"]);

/** All public IPv6 unicast addresses so far (RFC 4291); whatever else looks like unicast is not. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR("2000::/3");

/** Anything that is not an IP address is `forbidden`. An IPv4 address inside an IPv6 one counts as itself. */
export function classifyAddress(text: string): AddressKind {
  if (!ipaddr.isValid(text)) return "forbidden";
  const address = ipaddr.process(text);
  if (METADATA.has(address.toString())) return "forbidden";
  const range = address.range();
  if (PRIVATE_RANGES.has(range)) return "private";
  if (range !== "unicast") return "forbidden";
  return address.kind() === "ipv4" || address.match(GLOBAL_UNICAST) ? "public" : "forbidden";
}
