/**
 * Time only enqueues: what is due is a row with a time, and this one child looks for due rows. Questions expire
 * here; ended stateless runs are deleted a day later. A new question rings, because it may be due before the
 * next look.
 */
import type { Approval } from "../domain/approval.ts";
import { sleep } from "../kernel/clock.ts";
import { onAbort } from "../kernel/scope.ts";
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
    let wake = new AbortController();
    using _ = onAbort(signal, () => wake.abort());
    const unsubscribe = store.events.subscribe((events) => {
      if (events.some(({ body }) => body.type === "approval.requested")) wake.abort();
    });
    ready();
    try {
      while (!signal.aborted) {
        wake = new AbortController(); // before the look: whatever rings from here on is looked at again
        const now = clock.now();
        const { due, nextAt } = await store.approvals.due(now, batch);
        for (const approval of due) await expire(approval);
        const purged = await store.runs.purge(now - keepEphemeralMs, batch);
        const busy = due.length === batch || purged === batch;
        const untilNext = nextAt === null ? maxSleepMs : Math.max(0, nextAt - now);
        const ms = busy ? 0 : Math.min(maxSleepMs, untilNext);
        await sleep(clock, ms, wake.signal).catch(() => undefined);
      }
    } finally {
      unsubscribe();
    }
  };
}
