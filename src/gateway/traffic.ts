import type { FastifyReply, FastifyRequest } from "fastify";
import { BeamclawError } from "../domain/error-catalogue.ts";
import type { Clock } from "../kernel/clock.ts";
import type { GatewayObs } from "./ports.ts";
import { callerOf } from "./request.ts";

/** A client that hung up before it got a status line; nginx's number for it. */
const CLIENT_CLOSED = 499;
/** A restart takes about this long. */
const RETRY_SECONDS = 5;

/** The requests that are being served, and the door's closing. */
export class Traffic {
  readonly #clock: Clock;
  readonly #obs: GatewayObs;
  readonly #draining = new AbortController();
  #inFlight = 0;
  #empty: PromiseWithResolvers<void> | null = null;

  constructor(clock: Clock, obs: GatewayObs) {
    this.#clock = clock;
    this.#obs = obs;
  }

  /** Aborts when the gateway drains: readers that can resume elsewhere end then. */
  get draining(): AbortSignal {
    return this.#draining.signal;
  }

  /** Counts a request until its response has ended, or its connection. */
  enter(request: FastifyRequest, reply: FastifyReply): void {
    const startedAt = this.#clock.monotonic();
    this.#inFlight += 1;
    if (this.#draining.signal.aborted) reply.header("connection", "close");
    reply.raw.once("close", () => {
      this.#inFlight -= 1;
      if (this.#inFlight === 0) this.#empty?.resolve();
      this.#obs.httpRequest({
        requestId: request.id,
        method: request.method,
        route: request.routeOptions.url ?? "none",
        status: reply.raw.headersSent ? reply.raw.statusCode : CLIENT_CLOSED,
        durationMs: this.#clock.monotonic() - startedAt,
        token: callerOf(request).token,
      });
    });
  }

  /** Throws `shutting_down` for what would start work now. */
  refuseNewWork(): void {
    if (!this.#draining.signal.aborted) return;
    throw new BeamclawError("shutting_down", "the daemon is stopping", { retryAfterSeconds: RETRY_SECONDS });
  }

  /** Resolves when nothing is in flight any more. */
  drain(): Promise<void> {
    this.#draining.abort();
    if (this.#inFlight === 0) return Promise.resolve();
    this.#empty ??= Promise.withResolvers<void>();
    return this.#empty.promise;
  }
}
