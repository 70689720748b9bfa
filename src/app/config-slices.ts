/**
 * @TODO Provisional: `providers/provider-config.ts` will export this slice from its own layer, without loading an
 * adapter. Then `config-schema.ts` imports it from there and this file goes.
 */
import { z } from "zod";

/** A secret is named, never written down: see `secrets.ts`. */
const secretRef = z.union([
  z.strictObject({ env: z.string().min(1).describe("Name of an environment variable") }),
  z.strictObject({ file: z.string().min(1).describe("A file; relative paths start at BEAMCLAW_HOME") }),
]);

const timeouts = z.strictObject({
  connectMs: z.int().min(100).max(600_000).describe("Until the connection stands, milliseconds"),
  firstByteMs: z.int().min(100).max(3_600_000).describe("From the request to the first byte, milliseconds"),
  idleMs: z.int().min(100).max(3_600_000).describe("Between two pieces of an answer, milliseconds"),
});

const remote = {
  baseUrl: z.url({ protocol: /^https?$/ }).describe("Where the API lives"),
  apiKey: secretRef.nullable().optional().describe("Reference to the API key; null where none is needed"),
  model: z.string().min(1).describe("The model to ask"),
  headers: z.record(z.string(), z.string()).optional().describe("Further request headers, no credentials"),
  contextWindow: z.int().min(1_000).optional().describe("Tokens; overrides the built-in table"),
  maxOutputTokens: z.int().min(1).optional().describe("Bound on one answer, tokens"),
  timeouts: timeouts.partial().optional(),
  retries: z.int().min(0).max(10).optional().describe("Further attempts before the first byte"),
  retrySeconds: z.int().min(0).max(600).optional().describe("Time for all attempts together, seconds"),
  concurrency: z.int().min(1).max(10_000).optional().describe("Calls at the same time"),
  fallbacks: z.array(z.string()).optional().describe("Providers to try next, by name"),
  textToolCalls: z.boolean().optional().describe("Look for tool calls in the model's text"),
};

const contextWindow = remote.contextWindow;

export const providerSlice = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("openai"),
    ...remote,
    systemMessages: z
      .enum(["merged", "separate"])
      .optional()
      .describe("One system message (merged, the default) or one per text"),
    maxTokensField: z
      .enum(["max_tokens", "max_completion_tokens"])
      .optional()
      .describe("How the bound on the answer is sent; max_completion_tokens for api.openai.com"),
  }),
  z.strictObject({ kind: z.literal("anthropic"), ...remote }),
  z.strictObject({
    kind: z.literal("demo"),
    contextWindow,
    wordMs: z.int().min(0).max(10_000).optional().describe("Pause between two words, milliseconds"),
  }),
]);
