import { z } from "zod";
import { lazily } from "../kernel/lazily.ts";
import { autonomyLevels } from "../domain/autonomy.ts";
import type { Frozen } from "../domain/frozen.ts";
import { AGENT_NAME } from "../domain/ids.ts";
import { toolConfig } from "../tools/tool-config.ts";
import { providerSlice } from "../providers/provider-config.ts";

/**
 * The shape of the configuration. A key is here because code reads it, and `config/beamclaw.yaml` holds its
 * default, so after the two are merged every key has a value. Units and meanings are descriptions, because
 * the JSON Schema for editors is generated from this.
 */
const gateway = lazily(() =>
  z.strictObject({
    host: z.string().min(1).describe("Address to listen on; anything but loopback is reachable by others"),
    port: z.int().min(0).max(65_535).describe("TCP port; 0 picks a free one"),
    hosts: z
      .array(z.string().min(1))
      .describe("Further host names by which clients may address a daemon that listens on loopback"),
    bodyLimitBytes: z.int().min(1_024).max(268_435_456).describe("Largest request body, bytes"),
    trustProxy: z
      .array(z.union([z.cidrv4(), z.cidrv6(), z.ipv4(), z.ipv6()]))
      .describe("Addresses or CIDR ranges of proxies whose X-Forwarded-For is believed"),
    cors: z.strictObject({
      origins: z.array(z.string().min(1)).describe("Web origins that browsers may call from"),
    }),
    rateLimit: z.strictObject({
      requests: z.int().min(1).max(1_000_000).describe("Requests per client within the window"),
      windowSeconds: z.int().min(1).max(86_400).describe("Length of the window, seconds"),
      limitLocal: z.boolean().describe("Whether the owner and loopback clients are limited too"),
    }),
  }),
);

const loop = lazily(() =>
  z.strictObject({
    maxToolIterations: z.int().min(1).max(200).describe("Rounds of tool calls in one turn"),
    turnSeconds: z
      .int()
      .min(1)
      .max(86_400)
      .describe("Working time of one turn, waiting for people not counted"),
  }),
);

const sessions = lazily(() =>
  z.strictObject({
    sharing: z
      .enum(["shared", "per_channel"])
      .describe("Whether a person's channels share one conversation with an agent"),
    concurrentRuns: z.int().min(1).max(10_000).describe("Runs that work at the same time"),
    queue: z.strictObject({
      perSession: z.int().min(1).max(10_000).describe("Runs that may wait in one session"),
      total: z.int().min(1).max(1_000_000).describe("Runs that may wait in all sessions together"),
      ttlSeconds: z.int().min(1).max(604_800).describe("Until a waiting run expires, seconds"),
    }),
  }),
);

export const configSchema = lazily(() =>
  z.strictObject({
    gateway: gateway(),
    provider: z
      .string()
      .min(1)
      .describe("`auto` (the first provider with a key, else the offline demo) or a name of `providers`"),
    providers: z.record(z.string().regex(/^[a-z0-9_-]{1,64}$/), providerSlice()).describe("Models, by name"),
    loop: loop(),
    autonomy: z.enum(autonomyLevels).describe("How much agents may do without asking"),
    approvals: z.strictObject({
      expireSeconds: z
        .int()
        .min(1)
        .max(604_800)
        .describe("Until an unanswered question counts as no, seconds"),
    }),
    agents: z.strictObject({
      default: z.string().regex(AGENT_NAME).describe("The agent of requests that name none"),
    }),
    sessions: sessions(),
    tools: toolConfig(),
    store: z.strictObject({
      path: z.string().min(1).nullable().describe("Database file; null means BEAMCLAW_HOME/beamclaw.db"),
    }),
    obs: z.strictObject({
      logLevel: z
        .enum(["trace", "debug", "info", "warn", "error", "fatal"])
        .describe("Least level that is logged"),
      logFile: z
        .string()
        .min(1)
        .nullable()
        .describe("Log file; null means standard output in the foreground, else BEAMCLAW_HOME/logs"),
    }),
  }),
);

export type Config = Frozen<z.output<ReturnType<typeof configSchema>>>;

/** Where the configuration may refer to a secret; `*` stands for any name. */
export const secretPaths: readonly (readonly string[])[] = [
  ["providers", "*", "apiKey"],
  ["tools", "webSearch", "apiKey"],
];

/**
 * Keys whose new value a running daemon applies at once; every other key needs a restart. A prefix covers
 * all below it.
 */
export const livePaths: readonly (readonly string[])[] = [
  ["gateway", "rateLimit"],
  ["provider"],
  ["providers"],
  ["loop"],
  ["autonomy"],
  ["approvals"],
  ["agents", "default"],
  ["tools"],
  ["obs", "logLevel"],
];

export type JsonSchema = { readonly [key: string]: unknown };

/** JSON Schema of a configuration file, in which every key may be left out. */
export function configJsonSchema(): JsonSchema {
  const { $schema, ...schema } = z.toJSONSchema(configSchema(), { io: "input" });
  return { $schema, title: "beamclaw configuration", ...partial(schema) };
}

/**
 * A file may leave out what it does not change: `required` goes everywhere but in secret references. Without
 * its `kind` an entry can fit several kinds, so "exactly one of" becomes "any of".
 */
function partial(node: JsonSchema): JsonSchema {
  const entries = Object.entries(node).filter(([key]) => key !== "required" || isSecretSchema(node));
  return Object.fromEntries(
    entries.map(([key, value]) => [key === "oneOf" ? "anyOf" : key, partialValue(value)]),
  );
}

const isSecretSchema = (node: JsonSchema): boolean =>
  isJsonObject(node["properties"]) && ("env" in node["properties"] || "file" in node["properties"]);

function partialValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(partialValue);
  return isJsonObject(value) ? partial(value) : value;
}

export const isJsonObject = (value: unknown): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value);
