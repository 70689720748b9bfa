import { isDeepStrictEqual } from "node:util";
import { isTree } from "./config-file.ts";
import { at, expandPath } from "./config-paths.ts";
import { dotted } from "./config-problem.ts";
import { livePaths, secretPaths } from "./config-schema.ts";
import type { LoadedConfig } from "./config.ts";
import { describeRef, isSecretRef } from "./secrets.ts";

/** Changed keys by what it takes to apply them, dotted and sorted. */
export interface Reload {
  readonly live: readonly string[];
  readonly restart: readonly string[];
}

type Loaded = Pick<LoadedConfig, "config" | "secrets">;

/** What differs between two configurations. A secret with another value counts as its key being changed. */
export function reloadable(old: Loaded, next: Loaded): Reload {
  const changed = new Set([...changes(old.config, next.config, []), ...changedSecrets(old, next)]);
  const sorted = [...changed].toSorted();
  return { live: sorted.filter(isLive), restart: sorted.filter((path) => !isLive(path)) };
}

/**
 * The configuration that is in force after a reload: live keys from `next`, the others as they were. What needs a
 * restart still differs from `next`, so that the next reload names it again.
 */
export function inForce(old: LoadedConfig, next: LoadedConfig): LoadedConfig {
  const { provider, providers, loop, autonomy, approvals, tools, obs } = next.config; // as `livePaths` says
  const live = { provider, providers, loop, autonomy, approvals, tools };
  return { ...next, config: { ...old.config, ...live, obs: { ...old.config.obs, logLevel: obs.logLevel } } };
}

const isLive = (path: string): boolean => livePaths.some((prefix) => covers(dotted(prefix), path));

const covers = (prefix: string, path: string): boolean => path === prefix || path.startsWith(`${prefix}.`);

function changes(old: unknown, next: unknown, path: readonly string[]): readonly string[] {
  if (isDeepStrictEqual(old, next)) return [];
  if (!isTree(old) || !isTree(next) || isSecretRef(old) || isSecretRef(next)) return [dotted(path)];
  const keys = new Set([...Object.keys(old), ...Object.keys(next)]);
  return [...keys].flatMap((key) => changes(at(old, [key]), at(next, [key]), [...path, key]));
}

function changedSecrets(old: Loaded, next: Loaded): readonly string[] {
  const names = next.secrets.changedSince(old.secrets);
  return secretPaths
    .flatMap((pattern) => expandPath(next.config, pattern))
    .filter((path) => {
      const ref = at(next.config, path);
      return isSecretRef(ref) && names.has(describeRef(ref));
    })
    .map(dotted);
}
