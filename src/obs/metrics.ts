/** Prometheus metrics. Labels are of low cardinality only: never a session, a run, a path or a user. */
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

export class Metrics {
  readonly #registry = new Registry();
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

  /** Call once, before the first rendering. */
  observe(gauges: Gauges): void {
    this.#registry.registerMetric(runsOpen(gauges));
    this.#registry.registerMetric(oldestQueued(gauges));
    this.#registry.registerMetric(residentMemory());
  }

  runEnded(state: string, durationMs: number): void {
    this.#runs.inc({ state });
    this.#runSeconds.observe({ state }, durationMs / 1000);
  }

  modelCall({ provider, model, duration_ms, first_token_ms, error, usage }: ModelCallMetric): void {
    this.#modelSeconds.observe({ provider, model, outcome: error ?? "ok" }, duration_ms / 1000);
    if (first_token_ms !== null) this.#firstToken.observe({ provider, model }, first_token_ms / 1000);
    if (usage === null) return;
    this.#tokens.inc({ provider, model, kind: "prompt" }, usage.promptTokens);
    this.#tokens.inc({ provider, model, kind: "completion" }, usage.completionTokens);
    this.#tokens.inc({ provider, model, kind: "cached" }, usage.cachedTokens ?? 0);
  }

  toolCall(call: {
    readonly tool_name: string;
    readonly duration_ms: number;
    readonly success: boolean;
  }): void {
    const outcome = call.success ? "ok" : "failed";
    this.#toolSeconds.observe({ tool: call.tool_name, outcome }, call.duration_ms / 1000);
  }

  approval(decision: string): void {
    this.#approvals.inc({ decision });
  }

  /** What is started per run or session is named after it; such names are no labels. */
  childExit(supervisor: string, child: string, reason: string): void {
    this.#exits.inc({
      supervisor: supervisor.startsWith("run ") ? "run" : supervisor,
      child: supervisor === "sessions" ? "session" : child,
      reason,
    });
  }

  storeTrouble(): void {
    this.#troubles.inc();
  }

  defect(where: string): void {
    this.#defects.inc({ where });
  }

  refused(reason: string): void {
    this.#refused.inc({ reason });
  }

  httpRequest(request: {
    readonly method: string;
    readonly route: string;
    readonly status: number;
    readonly duration_ms: number;
  }): void {
    const { method, route, status, duration_ms } = request;
    this.#httpSeconds.observe({ method, route, status }, duration_ms / 1000);
  }

  lag({ p50, p99, max }: { readonly p50: number; readonly p99: number; readonly max: number }): void {
    this.#lag.set({ quantile: "0.5" }, p50 / 1000);
    this.#lag.set({ quantile: "0.99" }, p99 / 1000);
    this.#lag.set({ quantile: "1" }, max / 1000);
  }

  /** Prometheus text exposition format 0.0.4. */
  render(): Promise<string> {
    return this.#registry.metrics();
  }

  #counter<L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> {
    return new Counter(this.#options(name, help, labelNames));
  }

  #gauge<L extends string>(name: string, help: string, labelNames: readonly L[]): Gauge<L> {
    return new Gauge(this.#options(name, help, labelNames));
  }

  #histogram<L extends string>(name: string, help: string, labelNames: readonly L[]): Histogram<L> {
    return new Histogram({ ...this.#options(name, help, labelNames), buckets: latencies });
  }

  #options<L extends string>(name: string, help: string, labelNames: readonly L[]) {
    return { name: `beamclaw_${name}`, help, labelNames: [...labelNames], registers: [this.#registry] };
  }
}

const runsOpen = (gauges: Gauges) =>
  new Gauge({
    registers: [],
    name: "beamclaw_runs_open",
    help: "Open runs, by state",
    labelNames: ["state"],
    async collect() {
      this.reset();
      for (const [state, count] of Object.entries(await gauges.runs())) this.set({ state }, count);
    },
  });

const oldestQueued = (gauges: Gauges) =>
  new Gauge({
    registers: [],
    name: "beamclaw_queue_oldest_seconds",
    help: "Age of the run that has waited longest for its turn",
    async collect() {
      this.set(await gauges.oldestQueuedSeconds());
    },
  });

const residentMemory = () =>
  new Gauge({
    registers: [],
    name: "beamclaw_resident_memory_bytes",
    help: "Resident memory of the process",
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
