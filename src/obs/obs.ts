import type { BusinessEvents } from "./events.ts";
import { businessEvents } from "./events.ts";
import { type LogOptions, ProcessLog } from "./log.ts";
import { Metrics } from "./metrics.ts";

/** What happens in the daemon, told once and consistently to log and metrics. */
export interface Obs {
  readonly events: BusinessEvents;
}

/** The observability of a whole process. */
export class ProcessObs implements Obs {
  readonly log: ProcessLog;
  readonly metrics = new Metrics();
  readonly events: BusinessEvents;

  constructor(options: LogOptions) {
    this.log = new ProcessLog(options);
    this.events = businessEvents(this.log, this.metrics);
  }
}
