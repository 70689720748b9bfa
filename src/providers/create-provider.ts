import { createHash } from "node:crypto";
import type { Provider } from "../agent/provider.ts";
import type { Clock } from "../kernel/clock.ts";
import { AnthropicProvider } from "./anthropic-provider.ts";
import { CircuitProvider, type Circuits } from "./circuit-provider.ts";
import { contextWindowOf } from "./context-windows.ts";
import { DemoProvider } from "./demo-provider.ts";
import { FallbackProvider } from "./fallback-provider.ts";
import { LimitedProvider } from "./limited-provider.ts";
import type { Scrub } from "./model-fault.ts";
import type { ModelHttp, Timeouts } from "./model-http.ts";
import { OpenAiProvider } from "./openai-provider.ts";
import { providerDefaults, type ProviderEntry, type RemoteEntry } from "./provider-config.ts";
import { RetryingProvider } from "./retrying-provider.ts";
import { TextCallProvider } from "./text-call-provider.ts";

/** What all providers of a process share. */
export interface ProviderDeps {
  readonly clock: Clock;
  readonly http: ModelHttp;
  readonly circuits: Circuits;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  /** Takes secrets out of what a provider says about an error. */
  readonly scrub: Scrub;
}

/**
 * The provider of one entry with its retries, limits and the rest, but without its fallbacks. From the inside
 * out: the adapter; tool calls in text, which are part of understanding it; the limit, whose places are free
 * during a retry's pause; retries; the circuit, which counts what retries could not mend.
 */
export function createProvider(
  name: string,
  entry: ProviderEntry,
  apiKey: string | null,
  deps: ProviderDeps,
): Provider {
  if (entry.kind === "demo") {
    const {
      wordMs = providerDefaults.demoWordMs,
      contextWindow: window = providerDefaults.demoContextWindow,
    } = entry;
    return new DemoProvider({ name, wordMs, contextWindow: window }, deps.clock);
  }
  const { retries = providerDefaults.retries, retrySeconds = providerDefaults.retrySeconds } = entry;
  const adapter = createAdapter(name, entry, apiKey, deps);
  const reading = entry.textToolCalls === true ? new TextCallProvider(adapter) : adapter;
  const limited = new LimitedProvider(reading, entry.concurrency ?? providerDefaults.concurrency);
  const retrying = new RetryingProvider(limited, { retries, retrySeconds }, deps.clock, deps.random);
  return new CircuitProvider(retrying, deps.circuits.of(circuitKey(entry, apiKey), name));
}

/**
 * All providers of a configuration by name, fallbacks included. A fallback brings its own retries and limits but
 * not its own fallbacks, so chains cannot run in circles; names that are no entry are left out.
 */
export function createProviders(
  entries: Readonly<Record<string, ProviderEntry>>,
  apiKeyOf: (name: string) => string | null,
  deps: ProviderDeps,
): ReadonlyMap<string, Provider> {
  const single = new Map(
    Object.entries(entries).map(([name, entry]) => [name, createProvider(name, entry, apiKeyOf(name), deps)]),
  );
  const withFallbacks = [...single].map(([name, provider]): [string, Provider] => {
    const entry = entries[name];
    const names = entry === undefined || entry.kind === "demo" ? [] : (entry.fallbacks ?? []);
    const others = names.map((other) => single.get(other)).filter((other) => other !== undefined);
    return [name, others.length === 0 ? provider : new FallbackProvider(provider, ...others)];
  });
  return new Map(withFallbacks);
}

function createAdapter(
  name: string,
  entry: RemoteEntry,
  apiKey: string | null,
  deps: ProviderDeps,
): Provider {
  const options = {
    name,
    model: entry.model,
    baseUrl: entry.baseUrl,
    apiKey,
    headers: entry.headers ?? {},
    contextWindow: entry.contextWindow ?? contextWindowOf(entry.model),
    maxOutputTokens: entry.maxOutputTokens,
    timeouts: timeoutsOf(entry),
  };
  const context = { http: deps.http, clock: deps.clock, scrub: withoutKey(apiKey, deps.scrub) };
  if (entry.kind === "anthropic") return new AnthropicProvider(options, context);
  const isOpenAi = /(^|\.)openai\.com$/.test(new URL(entry.baseUrl).hostname);
  return new OpenAiProvider(
    {
      ...options,
      systemMessages: entry.systemMessages ?? "merged",
      maxTokensField: entry.maxTokensField ?? (isOpenAi ? "max_completion_tokens" : "max_tokens"),
    },
    context,
  );
}

function timeoutsOf({ timeouts = {} }: RemoteEntry): Timeouts {
  const { connectMs, firstByteMs, idleMs } = providerDefaults.timeouts;
  return {
    connectMs: timeouts.connectMs ?? connectMs,
    firstByteMs: timeouts.firstByteMs ?? firstByteMs,
    idleMs: timeouts.idleMs ?? idleMs,
  };
}

/** Whatever the shape of the key, it never appears in a failure. */
function withoutKey(apiKey: string | null, scrub: Scrub): Scrub {
  if (apiKey === null || apiKey === "") return scrub;
  return (text) => scrub(text.replaceAll(apiKey, "[REDACTED]"));
}

/** Entries that share credential, address and model share their health. */
function circuitKey({ kind, baseUrl, model }: RemoteEntry, apiKey: string | null): string {
  return createHash("sha256")
    .update(JSON.stringify([kind, baseUrl, model, apiKey]))
    .digest("hex");
}
