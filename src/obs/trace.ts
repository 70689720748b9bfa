import type { RunId } from "../domain/ids.ts";

/** W3C trace id of a run: its id without dashes, so that logs, events and outgoing headers share it for free. */
export const traceIdOf = (runId: RunId): string => runId.replaceAll("-", "");
