/**
 * The daemon at a glance: what is started, in which order, and who goes down with whom. Children start from left
 * to right and stop from right to left; a crash restarts the child and everyone to its right.
 */
import type { Clock } from "../kernel/clock.ts";
import { type Child, type ExitReport, supervise, type SupervisorSpec } from "../kernel/supervisor.ts";

export interface TreeChildren {
  /** Reports how late the event loop runs. */
  readonly watchdog: Child;
  /** Opens the database and its writer thread. */
  readonly store: Child;
  /** The lanes: takes up open runs, then runs what comes. */
  readonly sessions: Child;
  /** Questions that expire, stateless runs that are due for deletion. */
  readonly timers: Child;
  /** The same HTTP application on the control socket and on TCP. */
  readonly socket: Child;
  readonly http: Child;
}

export interface TreeOptions {
  readonly clock: Clock;
  readonly report: (report: ExitReport) => void;
}

export function tree(children: TreeChildren, options: TreeOptions): SupervisorSpec {
  const gateway = supervise({
    id: "gateway",
    strategy: "one_for_one",
    children: [
      { id: "socket", run: children.socket },
      { id: "http", run: children.http },
    ],
    ...options,
  });
  return {
    id: "beamclaw",
    strategy: "rest_for_one",
    children: [
      { id: "watchdog", run: children.watchdog },
      { id: "store", run: children.store, shutdownMs: 10_000 },
      { id: "sessions", run: children.sessions, shutdownMs: Infinity }, // its children have deadlines of their own
      { id: "timers", run: children.timers },
      { id: "gateway", run: gateway, shutdownMs: Infinity },
    ],
    ...options,
  };
}
