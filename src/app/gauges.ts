/** What the metrics ask of the daemon when they are rendered. */
import type { Gauges } from "../obs/metrics.ts";
import type { Store } from "../store/ports.ts";
import { openRuns } from "./admin.ts";
import type { DaemonParts } from "./daemon-parts.ts";

export const gauges = (parts: DaemonParts): Gauges => ({
  runs: () => openRuns(parts),
  async oldestQueuedSeconds() {
    const store = parts.store.peek();
    const since = store === null ? null : await oldestQueued(store);
    return since === null ? 0 : Math.max(0, parts.clock.now() - since) / 1000;
  },
});

/** When the run was accepted that has waited longest. Lists come newest first; the queue's bound bounds the pages. */
async function oldestQueued({ runs }: Store): Promise<number | null> {
  let oldest: number | null = null;
  let cursor: string | null = null;
  do {
    const page = await runs.list({ states: ["queued"], page: { cursor, limit: 200 } });
    oldest = page.data.at(-1)?.createdAt ?? oldest;
    cursor = page.nextCursor;
  } while (cursor !== null);
  return oldest;
}
