import type { Autonomy } from "../domain/autonomy.ts";
import type { AgentName, RunId } from "../domain/ids.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Obs } from "../obs/obs.ts";
import type { Scrubber } from "../obs/scrubber.ts";
import type { Store } from "../store/ports.ts";
import type { ToolRegistry } from "../tools/registry.ts";
import type { Provider } from "./provider.ts";

/** What a run needs to know of its agent. Read again for every model call, so that edits take effect at once. */
export interface AgentProfile {
  readonly autonomy: Autonomy;
  readonly provider: Provider;
  /** Folder in which the agent's tools work. */
  readonly workspace: string;
  /** System texts, stable ones first. */
  system(): readonly string[];
}

export interface LoopSettings {
  /** Rounds of tool calls in one turn, 1 or more. */
  readonly maxToolIterations: number;
  /** Working time of a turn in seconds; waiting for a person does not count. */
  readonly turnSeconds: number;
  /** How long a question stays open, in seconds. */
  readonly approvalSeconds: number;
  /** Percent of the model's window at which a conversation is shortened, and to which. */
  readonly compaction: { readonly thresholdPct: number; readonly targetPct: number };
  /** Bytes of a tool's result that the model gets to see. */
  readonly maxResultBytes: number;
}

/** What every run of this process shares. */
export interface RunServices {
  readonly store: Store;
  readonly tools: ToolRegistry;
  readonly clock: Clock;
  readonly obs: Obs;
  /** Knows the secrets of the configuration beside the patterns. */
  readonly scrubber: Scrubber;
  readonly settings: LoopSettings;
  agent(name: AgentName): AgentProfile;
  /** W3C trace id of a run, 32 hex digits. */
  traceId(runId: RunId): string;
}
