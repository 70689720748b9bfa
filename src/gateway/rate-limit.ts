import ipaddr from "ipaddr.js";
import type { Clock } from "../kernel/clock.ts";
import type { RateLimitRule } from "./ports.ts";

/** Remembered admissions over all clients; at 8 bytes each a bound of 32 MiB. */
const MOST_REMEMBERED = 4_194_304;
const MOST_CLIENTS = 10_000;
const FEWEST_CLIENTS = 16;

interface Ring {
  /** Times of the last `requests` admissions; `count % length` is the oldest. */
  readonly admitted: number[];
  count: number;
}

/**
 * An exact sliding window: in any `windowSeconds` at most `requests` of one client are admitted. Refused
 * requests are not counted. When there are too many clients the one that is known longest is forgotten.
 */
export class SlidingWindow {
  readonly #requests: number;
  readonly #windowMs: number;
  readonly #mostClients: number;
  readonly #clock: Clock;
  readonly #rings = new Map<string, Ring>();

  constructor(rule: Pick<RateLimitRule, "requests" | "windowSeconds">, clock: Clock) {
    this.#requests = rule.requests;
    this.#windowMs = rule.windowSeconds * 1000;
    const affordable = Math.floor(MOST_REMEMBERED / rule.requests);
    this.#mostClients = Math.max(FEWEST_CLIENTS, Math.min(MOST_CLIENTS, affordable));
    this.#clock = clock;
  }

  /** 0 admits the request and counts it; else the whole seconds until one would be admitted. */
  take(client: string): number {
    const ring = this.#rings.get(client) ?? this.#remember(client);
    const wait = this.#waitOf(ring);
    if (wait === 0) {
      ring.admitted[ring.count % this.#requests] = this.#clock.monotonic();
      ring.count += 1;
    }
    return wait;
  }

  /** As `take`, without counting. */
  peek(client: string): number {
    const ring = this.#rings.get(client);
    return ring === undefined ? 0 : this.#waitOf(ring);
  }

  #waitOf(ring: Ring): number {
    if (ring.count < this.#requests) return 0;
    const oldest = ring.admitted[ring.count % this.#requests] ?? 0;
    const waitMs = oldest + this.#windowMs - this.#clock.monotonic();
    return waitMs <= 0 ? 0 : Math.ceil(waitMs / 1000);
  }

  #remember(client: string): Ring {
    if (this.#rings.size >= this.#mostClients) {
      const longest = this.#rings.keys().next();
      if (longest.done !== true) this.#rings.delete(longest.value);
    }
    const ring = { admitted: [], count: 0 };
    this.#rings.set(client, ring);
    return ring;
  }
}

/** The bucket of an address: an IPv6 customer owns at least a /64, so that is one client. */
export function addressBucket(address: string): string {
  if (!ipaddr.isValid(address)) return "unknown";
  const parsed = ipaddr.process(address);
  if (parsed.kind() === "ipv4") return parsed.toString();
  return ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toString()}/64`).toString();
}

export function isLoopback(address: string): boolean {
  if (address === "127.0.0.1" || address === "::1") return true; // nearly always, and without parsing
  return ipaddr.isValid(address) && ipaddr.process(address).range() === "loopback";
}
