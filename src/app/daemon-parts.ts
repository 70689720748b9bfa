import type { RunServices } from "../agent/run-services.ts";
import type { SessionRegistry } from "../agent/session-registry.ts";
import type { Workspaces } from "../agent/workspace.ts";
import type { Gateway } from "../gateway/server.ts";
import type { TokenBook } from "../gateway/tokens.ts";
import type { Clock } from "../kernel/clock.ts";
import type { LoopLag } from "../kernel/lag-watchdog.ts";
import type { ProcessObs } from "../obs/obs.ts";
import { traceIdOf } from "../obs/trace.ts";
import type { Store } from "../store/ports.ts";
import type { LoadedConfig } from "./config.ts";
import type { Home } from "./home.ts";
import type { Installation } from "./installation.ts";
import { Part } from "./part.ts";
import { ReadinessProbe } from "./readiness.ts";
import type { Runtime } from "./runtime.ts";

/** What a daemon consists of: what it is given for its whole life, and what its tree provides while it lives. */
export class DaemonParts {
  readonly home: Home;
  readonly installation: Installation;
  readonly clock: Clock;
  readonly obs: ProcessObs;
  readonly workspaces: Workspaces;
  readonly version: string;
  /** Milliseconds since the epoch, as the home's lock has it: together with the process id it names this daemon. */
  readonly startedAt: number;
  /** Secret of the owner's token. */
  readonly ownerSecret: string;
  readonly store = new Part<Store>("the store");
  readonly tokens = new Part<TokenBook>("the token book");
  readonly sessions = new Part<SessionRegistry>("the sessions");
  readonly socket = new Part<Gateway>("the control socket");
  readonly http = new Part<Gateway & { readonly url: string }>("the HTTP gateway");
  readonly readiness: ReadinessProbe;
  lag: LoopLag = { p50: 0, p99: 0, max: 0 };
  readonly #build: (loaded: LoadedConfig) => Runtime;
  #runtime: Runtime;

  constructor(options: {
    readonly home: Home;
    readonly installation: Installation;
    readonly clock: Clock;
    readonly obs: ProcessObs;
    readonly workspaces: Workspaces;
    readonly version: string;
    readonly startedAt: number;
    readonly ownerSecret: string;
    readonly runtime: Runtime;
    /** Builds the runtime of another configuration. */
    readonly build: (loaded: LoadedConfig) => Runtime;
  }) {
    this.home = options.home;
    this.installation = options.installation;
    this.clock = options.clock;
    this.obs = options.obs;
    this.workspaces = options.workspaces;
    this.version = options.version;
    this.ownerSecret = options.ownerSecret;
    this.#build = options.build;
    this.#runtime = options.runtime;
    this.startedAt = options.startedAt;
    this.readiness = new ReadinessProbe({
      clock: options.clock,
      store: () => this.store.peek(),
      provider: () => this.runtime.chosen.name,
    });
  }

  get runtime(): Runtime {
    return this.#runtime;
  }

  /** Puts another configuration in force, for everything that looks at the runtime anew. */
  apply(loaded: LoadedConfig): void {
    this.#runtime = this.#build(loaded);
    this.obs.log.setLevel(loaded.config.obs.logLevel);
    this.obs.log.setScrubber(this.#runtime.scrubber);
  }

  /** For runs: always the runtime of this moment. */
  services(): RunServices {
    const runtime = (): Runtime => this.runtime;
    return {
      store: this.store.get(),
      clock: this.clock,
      obs: this.obs,
      traceId: traceIdOf,
      agent: (name) => runtime().profiles.get(name),
      get tools() {
        return runtime().tools;
      },
      get settings() {
        return runtime().settings;
      },
      get scrubber() {
        return runtime().scrubber;
      },
    };
  }
}
