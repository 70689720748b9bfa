/** The fixed half of every measurement: a scratch directory on this disk, the mock model, the load client. */
import { fork, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { Gateway } from "./gateway.ts";
import { LoadReport, type Load } from "./load.ts";
import { CHUNK_TEXT, ModelStats, paceOf } from "./mock-model.ts";
import { cpuSeconds } from "./proc.ts";

/** The single-threaded client and model may use this much of one core; beyond it they are what is measured. */
const MOST_OF_A_CORE = 0.7;
/** One load may take this long; a gateway that hangs ends the benchmark instead of holding it. */
const LOAD_LIMIT_MS = 180_000;

/** A load, less what the rig and the gateway know already. */
export type Plan = Pick<Load, "callers" | "turns" | "prefix" | "sessions"> & Partial<Pick<Load, "messages">>;

export interface Outcome {
  readonly turns: number;
  readonly elapsedMs: number;
  readonly firstTokenMs: readonly number[];
  /** CPU that the gateway used from the first request to the last answer. */
  readonly gatewayCpuMs: number;
  /** Whether the figures speak of the gateway: all turns ended well and the rig was not the bottleneck. */
  readonly valid: boolean;
  readonly problem: string;
}

export class Rig implements AsyncDisposable {
  readonly directory: string;
  readonly modelPort: number;
  readonly #model: Peer;
  readonly #client: Peer;
  #answerChars = 0;
  #homes = 0;

  private constructor(directory: string, model: Peer, client: Peer, modelPort: number) {
    this.directory = directory;
    this.#model = model;
    this.#client = client;
    this.modelPort = modelPort;
    this.setPace("mock-50x0");
    process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  }

  /** Scratch space lies in the checkout: a memory file system elsewhere would make every sync free. */
  static async start(): Promise<Rig> {
    const scratch = fileURLToPath(new URL("../tmp/", import.meta.url));
    mkdirSync(scratch, { recursive: true });
    const model = new Peer("mock-model.ts");
    const { port } = z.object({ port: z.number() }).parse(await model.next());
    return new Rig(mkdtempSync(join(scratch, "bench-")), model, new Peer("client.ts"), port);
  }

  /** How the model streams from now on: `mock-<chunks>x<gap in ms>`. */
  setPace(name: string): void {
    const pace = paceOf(name);
    if (pace === undefined) throw new Error(`no pace: ${name}`);
    this.#answerChars = pace.chunks * CHUNK_TEXT.length;
    this.#model.send(name);
  }

  /** What the model saw since the last call. */
  async takeModelStats(): Promise<ModelStats> {
    return ModelStats.parse(await this.#model.ask("stats"));
  }

  /** A directory that no gateway has used. */
  newDirectory(name: string): string {
    this.#homes += 1;
    return join(this.directory, `${this.#homes}-${name}`);
  }

  /** Runs a load against a gateway and takes the CPU of all three processes around it. */
  async load(gateway: Gateway, plan: Plan): Promise<Outcome> {
    const target = { port: gateway.port, token: gateway.token, model: gateway.subject.model };
    return this.#measured(target, plan, gateway);
  }

  /** The same load straight at the model: what the rig itself costs. */
  async loadModel(plan: Plan): Promise<Outcome> {
    return this.#measured({ port: this.modelPort, token: "none", model: "mock" }, plan);
  }

  async #measured(
    target: Pick<Load, "port" | "token" | "model">,
    plan: Plan,
    gateway?: Gateway,
  ): Promise<Outcome> {
    const cpu = (): readonly number[] => [
      gateway?.cpuSeconds() ?? 0,
      this.#client.cpuSeconds(),
      this.#model.cpuSeconds(),
    ];
    const [gateway0 = 0, client0 = 0, model0 = 0] = cpu();
    const began = performance.now();
    const load: Load = { messages: 1, ...plan, ...target, answerChars: this.#answerChars };
    const report = LoadReport.parse(await this.#client.ask(load));
    const wallSeconds = (performance.now() - began) / 1e3;
    const [gateway1 = 0, client1 = 0, model1 = 0] = cpu();
    const rigShare = Math.max(client1 - client0, model1 - model0) / wallSeconds;
    // Without a gateway the rig is what is measured, and may be as busy as it likes.
    const problem = problemOf(report, gateway === undefined ? 0 : rigShare);
    return {
      turns: report.firstTokenMs.length,
      elapsedMs: report.elapsedMs,
      firstTokenMs: report.firstTokenMs,
      gatewayCpuMs: (gateway1 - gateway0) * 1e3,
      valid: problem === "",
      problem,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#model.stop(), this.#client.stop()]);
    rmSync(this.directory, { recursive: true, force: true });
  }
}

function problemOf(report: LoadReport, rigShare: number): string {
  if (report.failures > 0) return `${report.failures} turns failed: ${report.firstFailure}`;
  if (rigShare > MOST_OF_A_CORE) return `client or model used ${Math.round(rigShare * 100)} % of a core`;
  return "";
}

/** A process of the rig: one question, one answer. It ends itself when this process does. */
class Peer {
  readonly #process: ChildProcess;

  constructor(file: string) {
    this.#process = fork(new URL(file, import.meta.url), { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  }

  send(message: Load | string): void {
    this.#process.send(message);
  }

  ask(message: Load | string): Promise<unknown> {
    const answer = this.next();
    this.send(message);
    return answer;
  }

  /** The next message. Rejects when the process ends first or is silent for too long. */
  next(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => {
        clearTimeout(timer);
        this.#process.off("message", onMessage).off("exit", onExit);
        act();
      };
      const onMessage = (message: unknown): void => settle(() => resolve(message));
      const onExit = (): void => settle(() => reject(new Error("a process of the rig ended")));
      const timer = setTimeout(
        () => settle(() => reject(new Error(`no answer within ${LOAD_LIMIT_MS / 1000} s`))),
        LOAD_LIMIT_MS,
      );
      this.#process.on("message", onMessage).on("exit", onExit);
    });
  }

  cpuSeconds(): number {
    return cpuSeconds(this.#process.pid ?? 0);
  }

  async stop(): Promise<void> {
    const gone = new Promise((resolve) => this.#process.once("exit", resolve));
    if (this.#process.exitCode !== null) return;
    this.#process.disconnect();
    await gone;
  }
}
