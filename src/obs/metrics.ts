import type { Gauges, Instruments } from "./instruments.ts";

export type { Gauges } from "./instruments.ts";

/** Updates that wait for the first load of the instruments. */
const MAX_WAITING = 10_000;
/** As many waiting updates start the load without anybody asking for the metrics. */
const LOAD_AT = 1_000;

/**
 * The way to the instruments. They are a heavy import, so they are loaded when the metrics are asked for, or
 * when enough has happened; until then updates wait. Nothing here throws into the work that is measured.
 */
export class Metrics {
  #instruments: Instruments | null = null;
  #loading: Promise<Instruments> | null = null;
  #waiting: ((to: Instruments) => void)[] = [];
  #lost = 0;

  /** Applies `update`, now or once the instruments are loaded. An update that throws is counted as lost. */
  record(update: (to: Instruments) => void): void {
    if (this.#instruments !== null) {
      this.#apply(this.#instruments, update);
      return;
    }
    if (this.#waiting.length >= MAX_WAITING) this.#lost += 1;
    else this.#waiting.push(update);
    if (this.#waiting.length === LOAD_AT) this.load().catch(() => undefined); // whoever renders sees the error
  }

  /** Where the gauges get their values when the metrics are rendered. The last call counts. */
  observe(gauges: Gauges): void {
    this.record((to) => to.observe(gauges));
  }

  /** Loads the instruments, once. */
  load(): Promise<Instruments> {
    this.#loading ??= this.#load();
    return this.#loading;
  }

  /** Prometheus text exposition format 0.0.4. */
  async render(): Promise<string> {
    const instruments = await this.load();
    if (this.#lost > 0) instruments.lost(this.#lost);
    this.#lost = 0;
    return instruments.render();
  }

  async #load(): Promise<Instruments> {
    const { Instruments: Loaded } = await import("./instruments.ts");
    const instruments = new Loaded();
    this.#instruments = instruments;
    for (const update of this.#waiting) this.#apply(instruments, update);
    this.#waiting = [];
    return instruments;
  }

  #apply(instruments: Instruments, update: (to: Instruments) => void): void {
    try {
      update(instruments);
    } catch {
      this.#lost += 1;
    }
  }
}
