import { readFileSync } from "node:fs";
import { isTree, type LineOf, overlay, parseConfigFile, type Tree } from "./config-file.ts";
import { type ConfigMemory, recallConfig, rememberConfig } from "./config-memory.ts";
import { sortIssues } from "./config-issues.ts";
import { at, expandPath } from "./config-paths.ts";
import { type ConfigProblem, dotted } from "./config-problem.ts";
import { type Config, configSchema, secretPaths } from "./config-schema.ts";
import { checkMeaning, findLiteralSecrets } from "./config-rules.ts";
import { type Env, envValue } from "./home.ts";
import { isSecretRef, type SecretRef, Secrets } from "./secrets.ts";

export interface ConfigSource {
  readonly env: Env;
  /** BEAMCLAW_HOME: relative paths of secret files start here. */
  readonly home: string;
  /** The file that overrides the defaults. */
  readonly file: string;
  /** Whether a missing file is an error (the user named it) or simply no override. */
  readonly fileRequired: boolean;
  /** Text of the shipped `config/beamclaw.yaml`. */
  readonly defaultsText: string;
  /** What the last check found; without it every call checks anew. */
  readonly memory?: ConfigMemory;
}

/** A feature that is switched off because its secret is not there; nothing else is affected. */
export interface SwitchedOff {
  /** `providers.openai`, `tools.webSearch` … */
  readonly path: string;
  /** `OPENAI_API_KEY is not set` */
  readonly reason: string;
}

export interface LoadedConfig {
  readonly kind: "ok";
  /** Deeply frozen. Holds references to secrets, never their values, so it can be shown. */
  readonly config: Config;
  readonly secrets: Secrets;
  /** The canonical identity `BEAMCLAW_USER`; null where it is unset or empty. */
  readonly user: string | null;
  readonly off: readonly SwitchedOff[];
  readonly warnings: readonly ConfigProblem[];
}

export interface InvalidConfig {
  readonly kind: "invalid";
  /** All of them, at least one. */
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
}

/**
 * The configuration that is in force: shipped defaults, then the file, key by key, then the environment.
 * Reads the file and the secrets it refers to; never throws for anything that they hold.
 */
export function loadConfig(source: ConfigSource): LoadedConfig | InvalidConfig {
  const file = readOverrides(source);
  if (file.kind === "unreadable") return { kind: "invalid", problems: [file.problem], warnings: [] };
  const { memory } = source;
  const inputs = [source.defaultsText, file.text, source.env["BEAMCLAW_HOST"], source.env["BEAMCLAW_PORT"]];
  const known = memory === undefined ? null : recallConfig(memory, inputs);
  if (known !== null) {
    const loaded = inForce(source, known, { warnings: [], lineOf: () => null });
    if (loaded.kind === "ok") return loaded; // else the problems are told with their lines
  }
  const loaded = checkFile(source, file.text);
  if (memory !== undefined && loaded.kind === "ok" && loaded.warnings.length === 0) {
    rememberConfig(memory, inputs, loaded.config);
  }
  return loaded;
}

function checkFile(source: ConfigSource, text: string): LoadedConfig | InvalidConfig {
  const defaults = parseConfigFile(source.defaultsText);
  if (defaults.kind === "malformed") throw new Error("the shipped defaults are not valid YAML");
  const file = parseConfigFile(text);
  if (file.kind === "malformed") return { kind: "invalid", problems: file.problems, warnings: [] };

  const literal = findLiteralSecrets(file.tree, file.lineOf);
  const environment = fromEnvironment(source.env);
  const overrides = withoutPaths(file.tree, literal);
  const assemble = (tree: Tree): Tree => {
    const merged = overlay(overlay(defaults.tree, tree), environment.tree);
    return isTree(merged) ? merged : {};
  };
  const checked = check(overrides, assemble, file.lineOf);
  const problems = [...literal.map(({ problem }) => problem), ...environment.problems, ...checked.problems];
  const { config, warnings } = checked;
  if (config === null) return { kind: "invalid", problems, warnings };
  const loaded = inForce(source, config, { warnings, lineOf: file.lineOf });
  if (problems.length === 0) return loaded;
  const more = loaded.kind === "invalid" ? loaded.problems : [];
  return { kind: "invalid", problems: [...problems, ...more], warnings };
}

/** A configuration of the right shape with its secrets; invalid where it makes no sense with them. */
function inForce(
  source: ConfigSource,
  config: Config,
  { warnings, lineOf }: { readonly warnings: readonly ConfigProblem[]; readonly lineOf: LineOf },
): LoadedConfig | InvalidConfig {
  const secrets = new Secrets(secretRefs(config), { env: source.env, baseDir: source.home });
  const problems = checkMeaning(config, secrets, lineOf);
  if (problems.length > 0) return { kind: "invalid", problems, warnings };
  return {
    kind: "ok",
    config: deepFreeze(config),
    secrets,
    user: envValue(source.env, "BEAMCLAW_USER"),
    off: switchedOff(config, secrets),
    warnings,
  };
}

const MAX_FILE_BYTES = 1_048_576;

type Overrides =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "unreadable"; readonly problem: ConfigProblem };

function readOverrides(source: ConfigSource): Overrides {
  try {
    const bytes = readFileSync(source.file);
    if (bytes.length > MAX_FILE_BYTES) return unreadable(source.file, "it is larger than 1 MiB");
    return { kind: "text", text: bytes.toString("utf8") };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    if (code === "ENOENT" && !source.fileRequired) return { kind: "text", text: "" };
    return unreadable(source.file, code === "ENOENT" ? "there is no such file" : code);
  }
}

function unreadable(file: string, why: string): Overrides {
  const cure = "Name an existing, readable YAML file.";
  const message = `${file} cannot be read: ${why}`;
  return { kind: "unreadable", problem: { path: "", line: null, message, cure } };
}

/** Variables that stand for a configuration key. */
function fromEnvironment(env: Env): { readonly tree: Tree; readonly problems: readonly ConfigProblem[] } {
  const host = envValue(env, "BEAMCLAW_HOST");
  const port = envValue(env, "BEAMCLAW_PORT");
  const isPort = port !== null && /^\d{1,5}$/.test(port) && Number(port) <= 65_535;
  const problem: ConfigProblem = {
    path: "BEAMCLAW_PORT",
    line: null,
    message: "allowed is a whole number from 0 to 65535",
    cure: "Correct or unset the variable.",
  };
  return {
    tree: { gateway: { ...(host !== null && { host }), ...(isPort && { port: Number(port) }) } },
    problems: port === null || isPort ? [] : [problem],
  };
}

interface Checked {
  /** Null where nothing can be said about what the configuration means. */
  readonly config: Config | null;
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];
}

/**
 * Checks the shape. Unknown keys are taken out and only warn, so that a file of a newer or older version does not
 * stop the daemon. Wrong values are taken out as well, so that contradictions in the rest are found at once.
 */
function check(overrides: Tree, assemble: (tree: Tree) => Tree, lineOf: LineOf): Checked {
  const whole = assemble(overrides);
  const first = configSchema().safeParse(whole);
  if (first.success) return { config: first.data, problems: [], warnings: [] };
  const { unknown, wrong } = sortIssues(first.error.issues, whole, lineOf);
  const problems = wrong.map(({ problem }) => problem);
  const warnings = unknown.map(({ problem }) => problem);
  const rest = assemble(withoutPaths(overrides, [...unknown, ...wrong]));
  const second = configSchema().safeParse(rest);
  // Without the entry that is wrong, a name that leads to it would seem wrong too.
  const misleads = wrong.some(({ path }) => String(path[0]).startsWith("provider"));
  if (second.success) return { config: misleads ? null : second.data, problems, warnings };
  const found = wrong.length > 0 ? [] : sortIssues(second.error.issues, rest, lineOf).wrong;
  return { config: null, problems: [...problems, ...found.map(({ problem }) => problem)], warnings };
}

/** A copy without the values at these paths. */
function withoutPaths(tree: Tree, found: readonly { readonly path: readonly PropertyKey[] }[]): Tree {
  return found.reduce<Tree>((rest, { path }) => without(rest, path), tree);
}

function without(tree: Tree, path: readonly PropertyKey[]): Tree {
  const [first, ...rest] = path.map(String);
  const entries = Object.entries(tree).flatMap(([key, value]): [string, unknown][] => {
    if (key !== first) return [[key, value]];
    return rest.length > 0 && isTree(value) ? [[key, without(value, rest)]] : [];
  });
  return Object.fromEntries(entries);
}

function secretRefs(config: Config): readonly SecretRef[] {
  return secretPaths
    .flatMap((pattern) => expandPath(config, pattern))
    .map((path) => at(config, path))
    .filter(isSecretRef);
}

function switchedOff(config: Config, secrets: Secrets): readonly SwitchedOff[] {
  return secretPaths
    .flatMap((pattern) => expandPath(config, pattern))
    .flatMap((path) => {
      const ref = at(config, path);
      if (!isSecretRef(ref) || secrets.get(ref) !== null) return [];
      return [{ path: dotted(path.slice(0, -1)), reason: secrets.reason(ref) }];
    });
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const child of Object.values(value)) deepFreeze(child);
  }
  return value;
}
