import { z } from "zod";
import { lazily } from "../kernel/lazily.ts";
import type { Frozen } from "../domain/frozen.ts";

/** A secret is named, never written down. */
const secretRef = lazily(() =>
  z.union([
    z.strictObject({ env: z.string().min(1).describe("Name of an environment variable") }),
    z.strictObject({ file: z.string().min(1).describe("A file; relative paths start at BEAMCLAW_HOME") }),
  ]),
);

const timeouts = lazily(() =>
  z.strictObject({
    connectMs: z.int().min(100).max(600_000).describe("Until the connection stands, milliseconds"),
    firstByteMs: z.int().min(100).max(3_600_000).describe("From the request to the first byte, milliseconds"),
    idleMs: z.int().min(100).max(3_600_000).describe("Between two pieces of an answer, milliseconds"),
  }),
);

const contextWindow = lazily(() =>
  z.int().min(1_000).optional().describe("Tokens; overrides the built-in table"),
);

const remote = lazily(() => ({
  baseUrl: z.url({ protocol: /^https?$/ }).describe("Where the API lives"),
  apiKey: secretRef().nullable().optional().describe("Reference to the API key; null where none is needed"),
  model: z.string().min(1).describe("The model to ask"),
  headers: z.record(z.string(), z.string()).optional().describe("Further request headers, no credentials"),
  contextWindow: contextWindow(),
  maxOutputTokens: z.int().min(1).optional().describe("Bound on one answer, tokens"),
  timeouts: timeouts().partial().optional(),
  retries: z.int().min(0).max(10).optional().describe("Further attempts before the first byte"),
  retrySeconds: z.int().min(0).max(600).optional().describe("Time for all attempts together, seconds"),
  concurrency: z.int().min(1).max(10_000).optional().describe("Calls at the same time"),
  fallbacks: z.array(z.string()).optional().describe("Providers to try next, by name"),
  textToolCalls: z.boolean().optional().describe("Look for tool calls in the model's text"),
}));

const openai = lazily(() =>
  z.strictObject({
    kind: z.literal("openai"),
    ...remote(),
    systemMessages: z
      .enum(["merged", "separate"])
      .optional()
      .describe("One system message (merged, the default) or one per text"),
    maxTokensField: z
      .enum(["max_tokens", "max_completion_tokens"])
      .optional()
      .describe("How the bound on the answer is sent; max_completion_tokens for api.openai.com"),
  }),
);
const anthropic = lazily(() => z.strictObject({ kind: z.literal("anthropic"), ...remote() }));
const demo = lazily(() =>
  z.strictObject({
    kind: z.literal("demo"),
    contextWindow: contextWindow(),
    wordMs: z.int().min(0).max(10_000).optional().describe("Pause between two words, milliseconds"),
  }),
);

/** One entry of `providers:` in the configuration. */
export const providerSlice = lazily(() => z.discriminatedUnion("kind", [openai(), anthropic(), demo()]));
export type ProviderEntry = Frozen<z.infer<ReturnType<typeof providerSlice>>>;
/** An entry that talks to a server. */
export type RemoteEntry = Exclude<ProviderEntry, { kind: "demo" }>;

/** What an entry that says nothing gets. */
export const providerDefaults = {
  timeouts: { connectMs: 10_000, firstByteMs: 60_000, idleMs: 60_000 },
  retries: 2,
  retrySeconds: 30,
  concurrency: 64,
  demoWordMs: 4,
  demoContextWindow: 128_000,
} as const;
