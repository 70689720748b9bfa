/** What runs need to know of their agents, from the configuration and the workspaces. */
import { Prompt } from "../agent/prompt.ts";
import type { Provider } from "../agent/provider.ts";
import type { AgentProfile } from "../agent/run-services.ts";
import type { Workspaces } from "../agent/workspace.ts";
import type { Autonomy } from "../domain/autonomy.ts";
import type { AgentName } from "../domain/ids.ts";
import type { Clock } from "../kernel/clock.ts";

export class AgentProfiles {
  readonly #workspaces: Workspaces;
  readonly #provider: Provider;
  readonly #clock: Clock;
  readonly #autonomy: Autonomy;
  /** One for each agent that has been talked to; agents are few and made by hand. */
  readonly #prompts = new Map<AgentName, Prompt>();

  constructor(options: {
    readonly workspaces: Workspaces;
    readonly provider: Provider;
    readonly clock: Clock;
    readonly autonomy: Autonomy;
  }) {
    this.#workspaces = options.workspaces;
    this.#provider = options.provider;
    this.#clock = options.clock;
    this.#autonomy = options.autonomy;
  }

  get(name: AgentName): AgentProfile {
    const workspace = this.#workspaces.path(name);
    const prompt = this.#prompts.get(name) ?? new Prompt(workspace, this.#clock);
    this.#prompts.set(name, prompt);
    return {
      autonomy: this.#autonomy,
      provider: this.#provider,
      workspace,
      system: () => prompt.texts(),
    };
  }
}
