/**
 * What the configuration makes of provider, tools, settings and scrubber. It is built anew when the configuration is
 * read again and swapped as a whole; a model call or a tool call that is under way keeps what it began with.
 */
import { dirname } from "node:path";
import type { LoopSettings } from "../agent/run-services.ts";
import type { Workspaces } from "../agent/workspace.ts";
import { lazily } from "../kernel/lazily.ts";
import { createScrubber, type Scrubber } from "../obs/scrubber.ts";
import { createProviders, type ProviderDeps } from "../providers/create-provider.ts";
import { builtinTools, processRunner } from "../tools/builtin-tools.ts";
import { ToolRegistry } from "../tools/registry.ts";
import { AgentProfiles } from "./agent-profiles.ts";
import type { LoadedConfig } from "./config.ts";
import { chooseProvider, type ChosenProvider } from "./config-rules.ts";
import type { Env, Home } from "./home.ts";

export interface Runtime {
  readonly loaded: LoadedConfig;
  readonly chosen: ChosenProvider;
  readonly profiles: AgentProfiles;
  readonly tools: ToolRegistry;
  readonly settings: LoopSettings;
  readonly scrubber: Scrubber;
  /** Ends what a former daemon of this home left running. */
  reapLeftovers(): Promise<number>;
}

export interface RuntimeOptions {
  readonly loaded: LoadedConfig;
  readonly home: Home;
  readonly env: Env;
  readonly workspaces: Workspaces;
  /** Outlives a reload: open connections, and what is known of the health of the models' APIs. */
  readonly shared: Omit<ProviderDeps, "scrub">;
}

/** Percent of the model's window: when a conversation is shortened, and how far. */
const compaction = { thresholdPct: 80, targetPct: 40 };
const maxResultBytes = 262_144;

export function buildRuntime({ loaded, home, env, workspaces, shared }: RuntimeOptions): Runtime {
  const { clock } = shared;
  const { config, secrets } = loaded;
  const chosen = chooseProvider(config, secrets);
  const scrubber = createScrubber({ literals: secrets.literals() });
  const runner = processRunner(config.tools, clock, home.root);
  const providers = createProviders(config.providers, apiKeys(loaded), {
    ...shared,
    scrub: (text) => scrubber.scrubText(text),
  });
  const provider = providers.get(chosen.name);
  if (provider === undefined) throw new Error(`the configuration has no provider ${chosen.name}`); // checked when it was loaded
  const tools = lazily(() => {
    const list = builtinTools(config.tools, {
      runner,
      env,
      hidden: [home.root, dirname(home.socket)],
      clock,
      webSearchKey: secrets.get(config.tools.webSearch.apiKey)?.reveal() ?? null,
    });
    return new ToolRegistry(list);
  });
  return {
    loaded,
    chosen,
    profiles: new AgentProfiles({ workspaces, provider, clock, autonomy: config.autonomy }),
    get tools() {
      return tools(); // the first turn needs them, a start does not
    },
    settings: {
      maxToolIterations: config.loop.maxToolIterations,
      turnSeconds: config.loop.turnSeconds,
      approvalSeconds: config.approvals.expireSeconds,
      compaction,
      maxResultBytes,
    },
    scrubber,
    reapLeftovers: () => runner.reapLeftovers(),
  };
}

const apiKeys =
  ({ config, secrets }: LoadedConfig) =>
  (name: string): string | null => {
    const entry = config.providers[name];
    return entry === undefined || entry.kind === "demo"
      ? null
      : (secrets.get(entry.apiKey)?.reveal() ?? null);
  };
