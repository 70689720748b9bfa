/** The agent layer with real parts in memory: SQLite, a scripted model, a clock that is moved by hand. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import type { Submitted, SubmitRequest } from "../../src/agent/conversations.ts";
import type { Ending, LiveRun } from "../../src/agent/live-run.ts";
import type { RunServices } from "../../src/agent/run-services.ts";
import { SessionRegistry } from "../../src/agent/session-registry.ts";
import type { Autonomy, Effect } from "../../src/domain/autonomy.ts";
import {
  type AgentName,
  asId,
  deriveSessionId,
  type Principal,
  type SessionId,
} from "../../src/domain/ids.ts";
import type { Run, RunInput } from "../../src/domain/run.ts";
import { ManualClock } from "../../src/kernel/clock.ts";
import { createScrubber } from "../../src/obs/scrubber.ts";
import { RecordingObs } from "../../src/obs/recording-obs.ts";
import { traceIdOf } from "../../src/obs/trace.ts";
import { ScriptedProvider } from "../../src/providers/scripted-provider.ts";
import type { Store } from "../../src/store/ports.ts";
import { openSqliteStore } from "../../src/store/sqlite-store.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { ToolRegistry } from "../../src/tools/registry.ts";
import type { Tool, ToolResult } from "../../src/tools/tool.ts";

export const alice = asId<Principal>("local:alice");
export const agent = asId<AgentName>("default");
export const session = deriveSessionId(alice, agent);

/** A tool that records what it was asked to do, as an outside world would. */
export function recordingTool(
  name: string,
  effect: Effect,
  answer: (text: string, signal: AbortSignal) => Promise<ToolResult> | ToolResult = (text) => ({
    ok: true,
    text: `did ${text}`,
  }),
): { readonly tool: Tool; readonly done: string[] } {
  const done: string[] = [];
  const tool = defineTool({
    name,
    description: `records ${name}`,
    input: z.object({ text: z.string() }),
    minAutonomy: effect === "none" ? "read_only" : "supervised",
    leastEffect: effect,
    effect: () => effect,
    pattern: ({ text }) => `${name} ${text}`,
    summary: ({ text }) => text,
    run: async ({ text }, { signal }) => {
      done.push(text);
      return answer(text, signal);
    },
  });
  return { tool, done };
}

export interface WorldOptions {
  readonly tools?: readonly Tool[];
  readonly autonomy?: Autonomy;
  readonly concurrentRuns?: number;
  readonly perSession?: number;
  readonly total?: number;
  readonly contextWindow?: number;
  readonly maxToolIterations?: number;
  readonly approvalSeconds?: number;
  /** Continue with the store of a former world, as a new process would. */
  readonly store?: Store;
}

export class World implements AsyncDisposable {
  readonly clock = new ManualClock(1_800_000_000_000);
  readonly obs = new RecordingObs();
  readonly provider: ScriptedProvider;
  readonly sessions: SessionRegistry;
  readonly store: Store;
  readonly services: RunServices;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  readonly #folder: string | null;

  private constructor(store: Store, folder: string | null, options: WorldOptions) {
    this.store = store;
    this.#folder = folder;
    this.provider = new ScriptedProvider([], { contextWindow: options.contextWindow ?? 100_000 });
    this.services = this.#services(options);
    this.sessions = new SessionRegistry(this.services, {
      concurrentRuns: options.concurrentRuns ?? 8,
      queue: { perSession: options.perSession ?? 32, total: options.total ?? 1000, ttlSeconds: 3600 },
    });
    this.#running = this.sessions.run({ signal: this.#stop.signal, ready: () => undefined });
  }

  static async open(options: WorldOptions = {}): Promise<World> {
    if (options.store !== undefined) return new World(options.store, null, options);
    const folder = mkdtempSync(join(tmpdir(), "beamclaw-test-"));
    const store = await openSqliteStore({
      file: ":memory:",
      attachmentsDir: join(folder, "attachments"),
      writer: "inline",
    });
    return new World(store, folder, options);
  }

  /** Leaves every run as it is stored, like a process that dies between two steps. */
  async crash(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.crash();
    if (this.#folder === null) return;
    await this.store.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  submit(
    text: string,
    options: Partial<Omit<SubmitRequest, "input">> & { readonly input?: Partial<RunInput> } = {},
  ): Promise<Submitted> {
    return this.sessions.submit({
      sessionId: session,
      principal: alice,
      agent,
      channel: "http",
      idempotency: null,
      mayDecide: true,
      ...options,
      input: inputOf(text, options.input),
    });
  }

  /** Submits, and waits for how it ends. */
  async say(text: string, options: Parameters<World["submit"]>[1] = {}): Promise<Ending> {
    const submitted = await this.submit(text, options);
    if (submitted.kind === "refused") throw new Error(`refused: ${submitted.code}`);
    if (submitted.live === null) throw new Error("nothing to follow");
    return endingOf(submitted.live);
  }

  /** The history as role and text, tool calls by name. */
  async history(id: SessionId = session): Promise<readonly string[]> {
    const messages = await this.store.sessions.messages(id, -1, 1000);
    return messages.map(({ wire }) => {
      const { role, content, tool_calls: calls = [] } = JSON.parse(wire);
      const asked = calls.map((call: { function: { name: string } }) => ` →${call.function.name}`).join("");
      return `${role}: ${typeof content === "string" ? content : JSON.stringify(content)}${asked}`;
    });
  }

  async run(ending: Ending): Promise<Run> {
    return (await this.store.runs.get(ending.run.id)) ?? ending.run;
  }

  #services(options: WorldOptions): RunServices {
    const { provider } = this;
    return {
      store: this.store,
      tools: new ToolRegistry(options.tools ?? []),
      clock: this.clock,
      obs: this.obs,
      scrubber: createScrubber(),
      settings: {
        maxToolIterations: options.maxToolIterations ?? 10,
        turnSeconds: 600,
        approvalSeconds: options.approvalSeconds ?? 900,
        compaction: { thresholdPct: 80, targetPct: 40 },
        maxResultBytes: 65_536,
      },
      agent: () => ({
        autonomy: options.autonomy ?? "supervised",
        provider,
        workspace: tmpdir(),
        system: () => ["You are a test."],
      }),
      traceId: traceIdOf,
    };
  }
}

export function endingOf(live: LiveRun): Promise<Ending> {
  return new Promise((resolve) => {
    const check = (): void => {
      if (live.ending === null) return;
      unfollow();
      resolve(live.ending);
    };
    const unfollow = live.follow(check);
    check();
  });
}

/** Resolves once the run has said something. */
export function spoken(live: LiveRun): Promise<void> {
  return new Promise((resolve) => {
    const check = (): void => {
      if (said(live) === "") return;
      unfollow();
      resolve();
    };
    const unfollow = live.follow(check);
    check();
  });
}

/** Everything that was said, in all segments. */
export const said = (live: LiveRun): string => live.segments.map((segment) => segment.text).join("|");

const inputOf = (text: string, input: Partial<RunInput> = {}): RunInput => ({
  messages: [{ role: "user", content: text }],
  system: [],
  options: {},
  clientTools: [],
  origin: { channel: "http", token: "owner", interactive: true, effects: true },
  ...input,
});
