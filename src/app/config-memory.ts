/**
 * What came out of the last configuration that was checked. A start with the very same inputs takes it as it is and
 * needs neither the YAML parser nor the schemas: a quarter of its time. Anything unreadable here is forgotten.
 */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { isTree } from "./config-file.ts";
import type { Config } from "./config-schema.ts";

export interface ConfigMemory {
  /** Of the home, and private to its owner: whoever can write it could write the configuration as well. */
  readonly file: string;
  /** Differs between any two builds of the program: another one may check in another way. */
  readonly build: string;
}

/** The configuration that was remembered for exactly these inputs, null where there is none. */
export function recallConfig(memory: ConfigMemory, inputs: readonly unknown[]): Config | null {
  try {
    const remembered: unknown = JSON.parse(readFileSync(memory.file, "utf8"));
    if (!isTree(remembered) || remembered["of"] !== digest(memory, inputs)) return null;
    return remembered["config"] as Config; // it had its shape when it was written, and the build is the same
  } catch {
    return null; // nothing remembered yet, or cut off by a crash: the configuration is checked anew
  }
}

/** Only for a configuration without any problem or warning. Holds no secret, as a configuration never does. */
export function rememberConfig(memory: ConfigMemory, inputs: readonly unknown[], config: Config): void {
  try {
    writeFileSync(memory.file, JSON.stringify({ of: digest(memory, inputs), config }), { mode: 0o600 });
  } catch {
    return; // a home that is not there yet, or a full disk: the next start checks again
  }
}

const digest = ({ build }: ConfigMemory, inputs: readonly unknown[]): string =>
  createHash("sha256")
    .update(JSON.stringify([build, ...inputs]))
    .digest("hex");
