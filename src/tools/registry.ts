import { type Autonomy, reaches } from "../domain/autonomy.ts";
import type { ToolDefinition } from "../domain/message.ts";
import type { Tool } from "./tool.ts";

/**
 * The tools of the daemon, built once from a list and never changed: a part that crashes and comes back finds
 * every tool where it was. More tools mean a new registry.
 */
export class ToolRegistry {
  readonly #tools: ReadonlyMap<string, Tool>;

  /** Throws on two tools of one name, and on a tool with effects that `read_only` would reach. */
  constructor(tools: readonly Tool[]) {
    for (const tool of tools) checkReach(tool);
    this.#tools = new Map(tools.map((tool) => [tool.definition.name, tool]));
    if (this.#tools.size !== tools.length) throw new Error(`duplicate tool among ${names(tools)}`);
  }

  get(name: string): Tool | undefined {
    return this.#tools.get(name);
  }

  /**
   * What a model may be shown, in the order of the list, so that prompts stay identical from turn to turn.
   * Without `effectsAllowed` only tools that have a call without any effect.
   */
  offered(autonomy: Autonomy, effectsAllowed: boolean): readonly ToolDefinition[] {
    return this.all()
      .filter(
        (tool) => reaches(autonomy, tool.minAutonomy) && (effectsAllowed || tool.leastEffect === "none"),
      )
      .map((tool) => tool.definition);
  }

  /** In the order of the list. */
  all(): readonly Tool[] {
    return [...this.#tools.values()];
  }
}

function checkReach(tool: Tool): void {
  if (tool.leastEffect !== "none" && reaches("read_only", tool.minAutonomy)) {
    throw new Error(`${tool.definition.name} has effects and needs at least supervised autonomy`);
  }
}

const names = (tools: readonly Tool[]): string => tools.map((tool) => tool.definition.name).join(", ");
