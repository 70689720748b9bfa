/** The `tools` part of the configuration. */
import { isAbsolute } from "node:path";
import { z } from "zod";
import { lazily } from "../kernel/lazily.ts";
import type { Frozen } from "../domain/frozen.ts";

const secretRef = lazily(() =>
  z.union([
    z.strictObject({ env: z.string().min(1).describe("Name of an environment variable") }),
    z.strictObject({ file: z.string().min(1).describe("A file; relative paths start at BEAMCLAW_HOME") }),
  ]),
);

const variable = lazily(() =>
  z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "use names of environment variables"),
);

const hostPattern = lazily(() =>
  z.string().regex(/^(\*\.)?[^\s/*@]+$/, "use host, host:port or *.host, without scheme and path"),
);

const files = lazily(() =>
  z.strictObject({
    roots: z
      .array(
        z
          .string()
          .refine((root) => root === "workspace" || isAbsolute(root), "use `workspace` or an absolute path"),
      )
      .default(["workspace"])
      .describe("Folders that file tools may use: `workspace` or absolute paths"),
  }),
);

const http = lazily(() =>
  z.strictObject({
    allow: z.array(hostPattern()).default([]).describe("If not empty, the only hosts that tools may reach"),
    deny: z.array(hostPattern()).default([]).describe("Hosts that tools may never reach"),
    ports: z.array(z.int().min(1).max(65_535)).default([80, 443]).describe("Ports that tools may use"),
    allowPrivate: z.boolean().default(false).describe("Whether loopback and local networks may be reached"),
    expandEnv: z.array(variable()).default([]).describe("Variables that tools may use in URLs and headers"),
  }),
);

const shell = lazily(() =>
  z.strictObject({
    timeoutSeconds: z.int().min(1).max(3_600).default(60).describe("Time limit of one command, seconds"),
    maxOutputBytes: z
      .int()
      .min(1_024)
      .max(16_777_216)
      .default(262_144)
      .describe("Output kept of one command, bytes"),
    env: z
      .array(variable())
      .default(["PATH", "HOME", "LANG", "TERM"])
      .describe("Variables that commands see"),
    sandbox: z
      .enum(["auto", "required", "off"])
      .default("auto")
      .describe("bubblewrap around commands: where it works, always (else refuse), never"),
    memoryMegabytes: z.int().min(64).default(4_096).describe("Memory of one process, MiB"),
    fileMegabytes: z.int().min(1).default(1_024).describe("Size of a file that a process may write, MiB"),
  }),
);

const webSearch = lazily(() =>
  z.strictObject({
    apiKey: secretRef()
      .nullable()
      .default({ env: "BRAVE_API_KEY" })
      .describe("Reference to a Brave Search key; unset: the tool says how to get one"),
    baseUrl: z
      .url({ protocol: /^https?$/ })
      .default("https://api.search.brave.com")
      .describe("Search service"),
    maxResults: z.int().min(1).max(20).default(10).describe("Results of one search"),
  }),
);

export const toolConfig = lazily(() =>
  z.strictObject({
    files: files().prefault({}),
    http: http().prefault({}),
    shell: shell().prefault({}),
    webSearch: webSearch().prefault({}),
  }),
);

export type ToolConfig = Frozen<z.output<ReturnType<typeof toolConfig>>>;
