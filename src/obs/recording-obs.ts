import { type BusinessEvents, businessEvents } from "./events.ts";
import type { Log, LogFields } from "./log.ts";
import { Metrics } from "./metrics.ts";
import type { Obs } from "./obs.ts";

export interface Recorded {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly event: string;
  readonly fields: LogFields;
}

/** Keeps what would be logged, for tests and simulation. */
export class RecordingObs implements Obs {
  readonly records: Recorded[] = [];
  readonly metrics = new Metrics();
  readonly events: BusinessEvents = businessEvents(this.#log(), this.metrics);

  /** Names of what happened, in order. */
  get names(): readonly string[] {
    return this.records.map(({ event }) => event);
  }

  #log(): Log {
    const record =
      (level: Recorded["level"]) =>
      (event: string, fields: LogFields = {}): void => {
        this.records.push({ level, event, fields });
      };
    return { debug: record("debug"), info: record("info"), warn: record("warn"), error: record("error") };
  }
}
