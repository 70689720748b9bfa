/**
 * Time only enqueues: what is due is a row with a time, and this one child looks for due rows. Questions expire
 * here; ended stateless runs are deleted a day later. A new question rings, because it may be due before the
 * next look.
 */
import type { Approval } from "../domain/approval.ts";
import { BeamclawError } from "../domain/error-catalogue.ts";
import { sleep } from "../kernel/clock.ts";
import { onAbort } from "../kernel/scope.ts";
import type { Child } from "../kernel/supervisor.ts";
import type { RunServices } from "./run-services.ts";

/** How long at most until the table is looked at again, whatever the next due time says. */
const maxSleepMs = 60_000;
const keepEphemeralMs = 24 * 60 * 60 * 1000;
const batch = 200;
/** Until a store that failed is asked again. */
const retryMs = 5_000;

export function timers(
  services: Pick<RunServices, "store" | "clock" | "obs">,
  expire: (approval: Approval) => Promise<void>,
): Child {
  const { store, clock } = services;
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
        const ms = await look(services, expire);
        await sleep(clock, ms, wake.signal).catch(() => undefined);
      }
    } finally {
      unsubscribe();
    }
  };
}

/** Does what is due; returns how long to sleep. A store that does not work now is a state, not a crash. */
async function look(
  { store, clock, obs }: Pick<RunServices, "store" | "clock" | "obs">,
  expire: (approval: Approval) => Promise<void>,
): Promise<number> {
  const now = clock.now();
  try {
    const { due, nextAt } = await store.approvals.due(now, batch);
    for (const approval of due) await expire(approval);
    const purged = await store.runs.purge(now - keepEphemeralMs, batch);
    const untilNext = nextAt === null ? maxSleepMs : Math.max(0, nextAt - now);
    return due.length === batch || purged === batch ? 0 : Math.min(maxSleepMs, untilNext);
  } catch (thrown) {
    if (!(thrown instanceof BeamclawError)) throw thrown;
    obs.events.storeTrouble({ error: thrown.message });
    return retryMs;
  }
}
