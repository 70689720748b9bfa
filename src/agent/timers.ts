/**
 * Time only enqueues: what is due is a row with a time, and this one child looks for due rows. Questions expire
 * here; ended stateless runs are deleted a day later.
 */
import type { Approval } from "../domain/approval.ts";
import { sleep } from "../kernel/clock.ts";
import type { Child } from "../kernel/supervisor.ts";
import type { RunServices } from "./run-services.ts";

/** How long at most until the table is looked at again, whatever the next due time says. */
const maxSleepMs = 60_000;
const keepEphemeralMs = 24 * 60 * 60 * 1000;
const batch = 200;

export function timers(
  { store, clock }: Pick<RunServices, "store" | "clock">,
  expire: (approval: Approval) => Promise<void>,
): Child {
  return async ({ signal, ready }) => {
    ready();
    while (!signal.aborted) {
      const now = clock.now();
      const { due, nextAt } = await store.approvals.due(now, batch);
      for (const approval of due) await expire(approval);
      const purged = await store.runs.purge(now - keepEphemeralMs, batch);
      const busy = due.length === batch || purged === batch;
      const untilNext = nextAt === null ? maxSleepMs : Math.max(0, nextAt - now);
      await sleep(clock, busy ? 0 : Math.min(maxSleepMs, untilNext), signal).catch(() => undefined);
    }
  };
}
