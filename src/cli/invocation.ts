import { BeamclawError } from "../domain/error-catalogue.ts";
import type { Clock } from "../kernel/clock.ts";
import { type ConfigSource, type InvalidConfig, loadConfig, type LoadedConfig } from "../app/config.ts";
import type { DaemonModule } from "../app/daemon-module.ts";
import { type Env, Home } from "../app/home.ts";
import type { Installation } from "../app/installation.ts";
import { isAbsolute, join } from "node:path";
import { DaemonClient } from "./daemon-client.ts";
import type { Terminal } from "./terminal.ts";

/** What surrounds the process; only `bin/` and tests make one. */
export interface Surroundings {
  readonly env: Env;
  /** Where relative operands such as the file of `backup` start; nothing else depends on it. */
  readonly cwd: string;
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly installation: Installation;
  readonly loadDaemon: () => Promise<DaemonModule>;
}

/** One command with its operands and options, as the user gave them. */
export class Invocation {
  readonly surroundings: Surroundings;
  readonly operands: readonly string[];
  readonly #options: Readonly<Record<string, unknown>>;

  constructor(
    surroundings: Surroundings,
    operands: readonly string[],
    options: Readonly<Record<string, unknown>>,
  ) {
    this.surroundings = surroundings;
    this.operands = operands;
    this.#options = options;
  }

  get terminal(): Terminal {
    return this.surroundings.terminal;
  }

  /** Throws `configuration` for a home that cannot be. */
  get home(): Home {
    return Home.locate(this.surroundings.env);
  }

  get client(): DaemonClient {
    return new DaemonClient(this.home.socket);
  }

  /** The operand at a position; the program has checked that it is there. */
  operand(index: number): string {
    const found = this.operands[index];
    if (found === undefined) throw new BeamclawError("usage", `operand ${index + 1} is missing`);
    return found;
  }

  flag(name: string): boolean {
    return this.#options[name] === true;
  }

  /** Null where the option is absent. */
  text(name: string): string | null {
    const value = this.#options[name];
    return typeof value === "string" ? value : null;
  }

  /** Every value of an option that may be repeated. */
  texts(name: string): readonly string[] {
    const value = this.#options[name];
    return Array.isArray(value) ? value.map(String) : [];
  }

  /** A whole number from `least` to `most`. Throws `usage` for anything else. */
  number(name: string, least: number, most: number): number | null {
    const text = this.text(name);
    if (text === null) return null;
    const value = Number(text);
    if (Number.isInteger(value) && value >= least && value <= most) return value;
    throw new BeamclawError("usage", `--${name} must be a whole number from ${least} to ${most}`);
  }

  /** An operand that names a file, as an absolute path. */
  path(text: string): string {
    return isAbsolute(text) ? text : join(this.surroundings.cwd, text);
  }

  /** The file named by `--config`, else the home's own. */
  configSource(): ConfigSource {
    const { env, installation } = this.surroundings;
    const named = this.text("config");
    const build = installation.readBuild();
    return {
      env,
      home: this.home.root,
      file: named === null ? this.home.configFile : this.path(named),
      fileRequired: named !== null,
      defaultsText: installation.readDefaults(),
      ...(build !== null && { memory: { file: this.home.checkedConfig, build } }),
    };
  }

  loadConfig(): LoadedConfig | InvalidConfig {
    return loadConfig(this.configSource());
  }

  /** Results as JSON with `--json`, else by `show`. */
  present(value: unknown, show: () => void): void {
    if (this.flag("json")) this.terminal.json(value);
    else show();
  }
}
