import type { Conversations } from "../agent/conversations.ts";
import type { ErrorCode } from "../domain/error-catalogue.ts";
import type { AgentName, Principal } from "../domain/ids.ts";
import type { Clock } from "../kernel/clock.ts";
import type { ApprovalStore, EventStore, RunStore, SessionStore, StepStore } from "../store/ports.ts";
import type { TokenBook } from "./tokens.ts";

/** What the gateway needs of the rest of the daemon. The composition root fills it in. */
export interface GatewayDeps {
  readonly conversations: Conversations;
  readonly store: GatewayStore;
  readonly agents: AgentDirectory;
  readonly tokens: TokenBook;
  readonly clock: Clock;
  readonly obs: GatewayObs;
  /** Prometheus text of all metrics. */
  readonly metrics: { render(): Promise<string> };
  /** Never rejects; cheap enough to be asked once a second. */
  readonly readiness: () => Promise<Readiness>;
  readonly version: string;
}

/** The reads that routes do themselves; everything that changes a conversation goes through `Conversations`. */
export interface GatewayStore {
  readonly runs: Pick<RunStore, "get" | "list">;
  readonly steps: Pick<StepStore, "list" | "findByCall">;
  readonly approvals: Pick<ApprovalStore, "get" | "list">;
  readonly sessions: Pick<SessionStore, "get" | "list" | "messages" | "openClientCalls" | "delete">;
  readonly events: EventStore;
}

export interface AgentDirectory {
  list(): Promise<readonly { readonly name: AgentName }[]>;
  exists(name: AgentName): boolean;
}

export interface Readiness {
  readonly ready: boolean;
  /** One entry per part (`store`, `provider:openai` …); `detail` is shown without a token, so no paths or keys. */
  readonly checks: Readonly<Record<string, { readonly ok: boolean; readonly detail?: string }>>;
}

/** The gateway's business events. None of these may throw or block. */
export interface GatewayObs {
  /** After the response (or its connection) has ended. `route` is the pattern, not the path: low cardinality. */
  httpRequest(record: {
    readonly requestId: string;
    readonly method: string;
    readonly route: string;
    readonly status: number;
    readonly durationMs: number;
    readonly token: string | null;
  }): void;
  /** A request was turned away by authentication, a limit or a check of its origin. */
  requestRefused(record: {
    readonly requestId: string;
    readonly code: ErrorCode;
    readonly address: string;
    readonly token: string | null;
  }): void;
  /** Something threw that is not an expected failure. */
  defect(error: Error, requestId: string): void;
}

/** How callers become principals: see `identity.ts`. */
export interface IdentityRules {
  /** `BEAMCLAW_USER`, made by `canonicalUser`; null where it is unset or empty. */
  readonly canonicalUser: Principal | null;
  /** Login name behind the local socket; the principal is `local:<name>`. */
  readonly localUser: string;
  /** `per_channel` keeps the sessions of one person on different channels apart. */
  readonly sharing: "shared" | "per_channel";
  readonly defaultAgent: AgentName;
}

/** Which way requests come in. The local socket is trusted with the owner's rights by its file mode. */
export type Door =
  | { readonly kind: "local" }
  | {
      readonly kind: "tcp";
      /** Bound to loopback addresses only: then only loopback and configured host names are answered. */
      readonly loopback: boolean;
      /** Further host names (without port) by which clients may address the daemon. */
      readonly hosts: readonly string[];
      /** Proxies whose X-Forwarded-For is believed: addresses or CIDR ranges. */
      readonly trustProxy: readonly string[];
      /** Browser origins that may call the API; `*` for any. */
      readonly corsOrigins: readonly string[];
      readonly rateLimit: RateLimitRule;
    };

export interface RateLimitRule {
  /** 1 or more, per window and client. */
  readonly requests: number;
  readonly windowSeconds: number;
  /** Whether the owner and direct loopback clients are limited too. */
  readonly limitLocal: boolean;
}

export interface GatewayOptions {
  readonly door: Door;
  readonly identity: IdentityRules;
  readonly bodyLimitBytes: number;
}
