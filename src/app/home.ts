import { createHash } from "node:crypto";
import { chmodSync, lstatSync, mkdirSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { isAbsolute, join, normalize } from "node:path";
import { BeamclawError } from "../domain/error-catalogue.ts";

/** Environment variables as a plain value; only `bin/` touches the process's own. */
export type Env = Readonly<Record<string, string | undefined>>;

/** A variable's value; the empty string counts as unset. */
export function envValue(env: Env, name: string): string | null {
  const value = env[name];
  return value === undefined || value === "" ? null : value;
}

/** Longest path that a unix socket address holds on Linux: `sun_path` is 108 bytes with its final NUL. */
const MAX_SOCKET_PATH = 107;

/**
 * Every path under BEAMCLAW_HOME. All are absolute and none depends on the current directory, so a daemon
 * and a command started from different places always mean the same files.
 */
export class Home {
  readonly root: string;
  readonly #runtimeDir: string;

  /** `root` is absolute; `runtimeDir` holds the socket if its path under `root` would be too long. */
  constructor(root: string, runtimeDir: string = tmpdir()) {
    this.root = normalize(root);
    this.#runtimeDir = runtimeDir;
  }

  /** `$BEAMCLAW_HOME`, else `~/.beamclaw`. Throws `configuration` for a relative path. */
  static locate(env: Env): Home {
    const userHome = envValue(env, "HOME") ?? userInfo().homedir;
    const named = envValue(env, "BEAMCLAW_HOME") ?? join(userHome, ".beamclaw");
    const root = named === "~" || named.startsWith("~/") ? join(userHome, named.slice(1)) : named;
    if (!isAbsolute(root)) {
      throw new BeamclawError("configuration", `BEAMCLAW_HOME must be an absolute path, it is ${root}`, {
        param: "BEAMCLAW_HOME",
      });
    }
    return new Home(root, envValue(env, "XDG_RUNTIME_DIR") ?? tmpdir());
  }

  get configFile(): string {
    return join(this.root, "config.yaml");
  }

  /** The owner token, mode 0600. */
  get tokenFile(): string {
    return join(this.root, "token");
  }

  get database(): string {
    return join(this.root, "beamclaw.db");
  }

  get attachments(): string {
    return join(this.root, "attachments");
  }

  get agents(): string {
    return join(this.root, "agents");
  }

  get run(): string {
    return join(this.root, "run");
  }

  /** See `lock.ts`. */
  get lockFile(): string {
    return join(this.run, "lock");
  }

  /** Who holds the lock, for messages to people only. */
  get ownerFile(): string {
    return join(this.run, "daemon.json");
  }

  /** See `config-memory.ts`. */
  get checkedConfig(): string {
    return join(this.run, "checked-config.json");
  }

  get logs(): string {
    return join(this.root, "logs");
  }

  /** What the daemon logs. */
  get logFile(): string {
    return join(this.logs, "beamclaw.log");
  }

  /** Whatever a detached daemon writes to its standard streams outside its log. */
  get consoleFile(): string {
    return join(this.logs, "console.log");
  }

  get #socketDir(): string {
    if (Buffer.byteLength(join(this.run, SOCKET_NAME)) <= MAX_SOCKET_PATH) return this.run;
    const digest = createHash("sha256").update(this.root).digest("hex").slice(0, 12);
    return join(this.#runtimeDir, `beamclaw-${userInfo().uid}-${digest}`);
  }

  /** The control socket. */
  get socket(): string {
    return join(this.#socketDir, SOCKET_NAME);
  }

  /**
   * Creates the folders, private to their owner (0700). A runtime folder outside the home must be ours and
   * no symbolic link: its name can be guessed, so somebody else could have made it first.
   */
  prepare(): void {
    for (const folder of [this.root, this.attachments, this.agents, this.run, this.logs, this.#socketDir]) {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
    }
    const found = lstatSync(this.#socketDir);
    if (!found.isDirectory() || found.uid !== userInfo().uid) {
      throw new BeamclawError("configuration", `${this.#socketDir} belongs to somebody else`);
    }
    chmodSync(this.#socketDir, 0o700);
  }
}

const SOCKET_NAME = "beamclaw.sock";
