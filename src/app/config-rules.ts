import { isTree, type LineOf, type Tree } from "./config-file.ts";
import { at } from "./config-paths.ts";
import { type ConfigProblem, dotted } from "./config-problem.ts";
import type { Config } from "./config-schema.ts";
import type { Secrets } from "./secrets.ts";

/** Rules that the shape alone cannot express: secrets written down, and keys that contradict each other. */

export interface LiteralSecret {
  readonly path: readonly string[];
  readonly problem: ConfigProblem;
}

/** Names of keys and headers whose value is a credential. */
const CREDENTIAL =
  /^(api[_-]?key|.*-api-key|x-api-token|authorization|proxy-authorization|cookie|token|secret|password)$/i;
const URL_WITH_PASSWORD = /^[a-z][a-z0-9+.-]*:\/\/[^/@\s]*:[^/@\s]+@/i;

/** Credentials that stand in the file itself. Looked for before anything else, so that no message shows one. */
export function findLiteralSecrets(tree: Tree, lineOf: LineOf): readonly LiteralSecret[] {
  return literalsBelow(tree, [], lineOf);
}

function literalsBelow(node: unknown, path: readonly string[], lineOf: LineOf): readonly LiteralSecret[] {
  if (typeof node === "string") return isLiteralSecret(node, path) ? [literalSecret(path, lineOf)] : [];
  if (!isTree(node)) return [];
  return Object.entries(node).flatMap(([key, child]) => literalsBelow(child, [...path, key], lineOf));
}

function isLiteralSecret(value: string, path: readonly string[]): boolean {
  return value !== "" && (CREDENTIAL.test(path.at(-1) ?? "") || URL_WITH_PASSWORD.test(value));
}

function literalSecret(path: readonly string[], lineOf: LineOf): LiteralSecret {
  const problem: ConfigProblem = {
    path: dotted(path),
    line: lineOf(path),
    message: "a secret may not stand in the file",
    cure: path.includes("headers")
      ? "Use the provider's apiKey with a reference, { env: NAME } or { file: PATH }."
      : "Put it into an environment variable or a private file and write { env: NAME } or { file: PATH }.",
  };
  return { path, problem };
}

/** Contradictions of a configuration whose shape is right. */
export function checkMeaning(config: Config, secrets: Secrets, lineOf: LineOf): readonly ConfigProblem[] {
  return [...checkProvider(config, secrets, lineOf), ...checkFallbacks(config, lineOf)];
}

function checkProvider(config: Config, secrets: Secrets, lineOf: LineOf): readonly ConfigProblem[] {
  const path = ["provider"];
  if (config.provider === "auto") return [];
  const entry = at(config.providers, [config.provider]);
  if (entry === undefined) {
    const names = ["auto", ...Object.keys(config.providers)].join(", ");
    return [problem(path, lineOf, `names no provider, allowed is one of ${names}`, "Correct the name.")];
  }
  const ref = config.providers[config.provider];
  if (ref === undefined || ref.kind === "demo" || !ref.apiKey || secrets.get(ref.apiKey) !== null) return [];
  return [
    problem(
      path,
      lineOf,
      `${config.provider} has no key: ${secrets.reason(ref.apiKey)}`,
      "Set it, or write `provider: auto`.",
    ),
  ];
}

function checkFallbacks(config: Config, lineOf: LineOf): readonly ConfigProblem[] {
  return Object.entries(config.providers).flatMap(([name, entry]) => {
    const path = ["providers", name, "fallbacks"];
    const wrong =
      entry.kind === "demo" ? [] : (entry.fallbacks ?? []).filter((other) => !knows(config, other, name));
    if (wrong.length === 0) return [];
    const others = Object.keys(config.providers).filter((other) => other !== name);
    return [problem(path, lineOf, `must name other providers: ${others.join(", ")}`, "Correct the names.")];
  });
}

const knows = (config: Config, name: string, except: string): boolean =>
  name !== except && Object.hasOwn(config.providers, name);

const problem = (path: readonly string[], lineOf: LineOf, message: string, cure: string): ConfigProblem => ({
  path: dotted(path),
  line: lineOf(path),
  message,
  cure,
});

/** The provider that answers, and why. */
export interface ChosenProvider {
  readonly name: string;
  readonly reason: string;
}

/**
 * `provider: auto` takes the first entry that can work: one whose key is there, or that needs none. Without
 * any, the offline demo answers. A provider that is named is taken as it is.
 */
export function chooseProvider(config: Config, secrets: Secrets): ChosenProvider {
  if (config.provider !== "auto") return { name: config.provider, reason: "named by the configuration" };
  for (const [name, entry] of Object.entries(config.providers)) {
    if (entry.kind === "demo") continue;
    if (!entry.apiKey) return { name, reason: "the first provider, it needs no key" };
    if (secrets.get(entry.apiKey) !== null) return { name, reason: "the first provider with a key" };
  }
  const demo = Object.entries(config.providers).find(([, entry]) => entry.kind === "demo");
  return { name: demo?.[0] ?? "demo", reason: "no provider has a key, so the offline demo answers" };
}
