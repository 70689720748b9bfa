/** The Prometheus metrics. Labels are of low cardinality only: never a session, a run, a path or a user. */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Usage } from "../domain/message.ts";

/** Looked at when the metrics are rendered. */
export interface Gauges {
  /** Open runs by state. */
  runs(): Promise<Readonly<Record<string, number>>>;
  /** Age of the run that has waited longest for its turn, seconds; 0 where none waits. */
  oldestQueuedSeconds(): Promise<number>;
}

export interface ModelCallMetric {
  readonly provider: string;
  readonly model: string;
  readonly duration_ms: number;
  readonly first_token_ms: number | null;
  readonly error: string | null;
  readonly usage: Usage | null;
}

/** Upper bounds of the histograms' buckets, seconds. */
const latencies = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300];

/** Values that one label may take; what a model or a client makes up beyond them counts as `other`. */
export const MAX_LABEL_VALUES = 100;

export class Instruments {
  readonly #registry = new Registry();
  readonly #seen = new Map<string, Set<string>>();
  readonly #runs = this.#counter("runs_total", "Runs that have ended, by state", ["state"]);
  readonly #runSeconds = this.#histogram("run_seconds", "From acceptance to the end of a run", ["state"]);
  readonly #modelSeconds = this.#histogram("model_call_seconds", "Duration of model calls", [
    "provider",
    "model",
    "outcome",
  ]);
  readonly #firstToken = this.#histogram("model_first_token_seconds", "Until a model's first word", [
    "provider",
    "model",
  ]);
  readonly #tokens = this.#counter("tokens_total", "Tokens as the provider counts them", [
    "provider",
    "model",
    "kind",
  ]);
  readonly #toolSeconds = this.#histogram("tool_call_seconds", "Duration of tool calls", ["tool", "outcome"]);
  readonly #approvals = this.#counter("approvals_total", "Answered questions, by decision", ["decision"]);
  readonly #exits = this.#counter("child_exits_total", "Unasked exits of supervised children", [
    "supervisor",
    "child",
    "reason",
  ]);
  readonly #troubles = this.#counter("store_troubles_total", "Failures of the store", []);
  readonly #defects = this.#counter("defects_total", "Throws that nobody expects", ["where"]);
  readonly #refused = this.#counter("refused_total", "Requests and runs turned away, by code", ["reason"]);
  readonly #httpSeconds = this.#histogram("http_request_seconds", "Duration of HTTP requests", [
    "method",
    "route",
    "status",
  ]);
  readonly #lag = this.#gauge("event_loop_delay_seconds", "How late the event loop runs", ["quantile"]);
  readonly #lost = this.#counter("metric_updates_lost_total", "Updates that could not be counted", []);
  #gauges: Gauges | null = null;

  constructor() {
    this.#gauge("runs_open", "Open runs, by state", ["state"], async (gauge) => {
      const counts = await this.#gauges?.runs().catch(() => null);
      gauge.reset();
      for (const [state, count] of Object.entries(counts ?? {})) gauge.set({ state }, count);
    });
    this.#gauge("queue_oldest_seconds", "Age of the run that has waited longest", [], async (gauge) => {
      const seconds = await this.#gauges?.oldestQueuedSeconds().catch(() => null);
      if (typeof seconds === "number") gauge.set(seconds);
      else gauge.remove({});
    });
    this.#gauge("resident_memory_bytes", "Resident memory of the process", [], (gauge) => {
      gauge.set(process.memoryUsage.rss());
    });
    this.#gauge("cpu_seconds", "Processor time of the process since its start", ["mode"], (gauge) => {
      const { user, system } = process.cpuUsage();
      gauge.set({ mode: "user" }, user / 1e6);
      gauge.set({ mode: "system" }, system / 1e6);
    });
  }

  /** What cannot be read at a rendering (the store is away) is left out of it; the rest stays. */
  observe(gauges: Gauges): void {
    this.#gauges = gauges;
  }

  runEnded(state: string, durationMs: number): void {
    this.#runs.inc({ state });
    this.#runSeconds.observe({ state }, durationMs / 1000);
  }

  modelCall(call: ModelCallMetric): void {
    const { duration_ms, first_token_ms, error, usage } = call;
    const labels = {
      provider: this.#label("provider", call.provider),
      model: this.#label("model", call.model),
    };
    const outcome = this.#label("outcome", error ?? "ok");
    this.#modelSeconds.observe({ ...labels, outcome }, duration_ms / 1000);
    if (first_token_ms !== null) this.#firstToken.observe(labels, first_token_ms / 1000);
    if (usage === null) return;
    const kinds = {
      prompt: usage.promptTokens,
      completion: usage.completionTokens,
      cached: usage.cachedTokens,
      reasoning: usage.reasoningTokens,
    };
    for (const [kind, count = 0] of Object.entries(kinds)) {
      if (count > 0) this.#tokens.inc({ ...labels, kind }, count);
    }
  }

  toolCall(tool: string, isOk: boolean, durationMs: number): void {
    const labels = { tool: this.#label("tool", tool), outcome: isOk ? "ok" : "failed" };
    this.#toolSeconds.observe(labels, durationMs / 1000);
  }

  approval(decision: string): void {
    this.#approvals.inc({ decision });
  }

  /** What is started per run or session is named after it; such names are no labels. */
  childExit(supervisor: string, child: string, reason: string): void {
    this.#exits.inc({
      supervisor: this.#label("supervisor", supervisor.startsWith("run ") ? "run" : supervisor),
      child: this.#label("child", supervisor === "sessions" ? "session" : child),
      reason,
    });
  }

  storeTrouble(): void {
    this.#troubles.inc();
  }

  defect(where: string): void {
    this.#defects.inc({ where: this.#label("where", where) });
  }

  refused(reason: string): void {
    this.#refused.inc({ reason: this.#label("reason", reason) });
  }

  httpRequest(method: string, route: string, status: number, durationMs: number): void {
    const labels = { method: this.#label("method", method), route: this.#label("route", route), status };
    this.#httpSeconds.observe(labels, durationMs / 1000);
  }

  /** Milliseconds. */
  lag({ p50, p99, max }: { readonly p50: number; readonly p99: number; readonly max: number }): void {
    this.#lag.set({ quantile: "0.5" }, p50 / 1000);
    this.#lag.set({ quantile: "0.99" }, p99 / 1000);
    this.#lag.set({ quantile: "1" }, max / 1000);
  }

  lost(updates: number): void {
    this.#lost.inc(updates);
  }

  /** Prometheus text exposition format 0.0.4. */
  render(): Promise<string> {
    return this.#registry.metrics();
  }

  /** `value`, or `other` once the label `name` has taken as many values as it may. */
  #label(name: string, value: string): string {
    const seen = this.#seen.get(name) ?? new Set();
    this.#seen.set(name, seen);
    if (!seen.has(value) && seen.size >= MAX_LABEL_VALUES) return "other";
    seen.add(value);
    return value;
  }

  #counter<L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> {
    return new Counter(this.#options(name, help, labelNames));
  }

  #gauge<L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    collect?: (gauge: Gauge<L>) => void | Promise<void>,
  ): Gauge<L> {
    const options = this.#options(name, help, labelNames);
    if (collect === undefined) return new Gauge(options);
    return new Gauge({
      ...options,
      collect() {
        return collect(this);
      },
    });
  }

  #histogram<L extends string>(name: string, help: string, labelNames: readonly L[]): Histogram<L> {
    return new Histogram({ ...this.#options(name, help, labelNames), buckets: latencies });
  }

  #options<L extends string>(name: string, help: string, labelNames: readonly L[]) {
    return { name: `beamclaw_${name}`, help, labelNames: [...labelNames], registers: [this.#registry] };
  }
}
