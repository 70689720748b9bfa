import type { Writable } from "node:stream";
import type { ConfigSource, LoadedConfig } from "./config.ts";
import type { Env, Home } from "./home.ts";
import type { Installation } from "./installation.ts";

/** What the command line hands to the daemon that it starts in its own process. */
export interface DaemonOptions {
  /** Prepared: its folders exist. */
  readonly home: Home;
  readonly installation: Installation;
  readonly env: Env;
  /** Where `loaded` came from, for reading it again. */
  readonly source: ConfigSource;
  readonly loaded: LoadedConfig;
  /** Nobody watches: the log goes to `home.logFile`, the standard streams hold only accidents. */
  readonly detached: boolean;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Called once, as soon as requests are answered over HTTP and the socket. */
  readonly onReady: (ready: DaemonReady) => void;
}

export interface DaemonReady {
  /** `http://127.0.0.1:18800` */
  readonly url: string;
  readonly provider: { readonly name: string; readonly reason: string; readonly isDemo: boolean };
}

/** What a daemon begins before its configuration is known; ends with its disposal unless `runDaemon` takes it. */
export type Prepared = AsyncDisposable;

/** The built entry point `daemon.js`, which is loaded only to run it. */
export interface DaemonModule {
  /**
   * Takes the home's lock and serves until SIGTERM, SIGINT or `POST /admin/stop`; SIGHUP reloads. Resolves with
   * the exit code once everything is closed; failures that people can mend are told on `stderr`.
   */
  readonly runDaemon: (options: DaemonOptions, prepared?: Prepared) => Promise<number>;
  readonly prepareDaemon: () => Prepared;
}
