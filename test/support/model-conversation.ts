import type { Step } from "./model-script.ts";

/** A request as both protocols see it: enough to pick an answer and to judge the conversation. */
export interface Conversation {
  readonly model: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly turns: readonly Turn[];
}

export interface Turn {
  readonly role: string;
  readonly text: string;
  /** Ids of the tool calls that the turn makes, and of those that it answers. */
  readonly calls: readonly string[];
  readonly results: readonly string[];
}

/** The value if it is text; else "". */
export const str = (value: unknown): string => (typeof value === "string" ? value : "");

/**
 * What strict APIs refuse: a result without its call, a call whose results do not follow at once.
 * Null: the conversation is well-formed.
 */
export function pairingProblem(turns: readonly Turn[]): string | null {
  let open = new Set<string>();
  for (const [index, turn] of turns.entries()) {
    for (const id of turn.results) {
      if (!open.delete(id)) return `messages[${index}]: a result for ${id}, which no preceding call has`;
    }
    if (turn.results.length > 0) continue;
    if (open.size > 0) return `messages[${index}]: tool calls ${[...open].join(", ")} have no results`;
    open = new Set(turn.calls);
    if (open.size < turn.calls.length) return `messages[${index}]: two calls share an id`;
  }
  return open.size === 0 ? null : `tool calls ${[...open].join(", ")} have no results`;
}

/** Text of the last message of the user, and how many answers have followed it. */
export function lastUser(turns: readonly Turn[]): { text: string; answers: number } {
  const index = turns.findLastIndex((turn) => turn.role === "user" && turn.results.length === 0);
  const answers = turns.slice(index + 1).filter((turn) => turn.role === "assistant").length;
  return { text: turns[index]?.text ?? "", answers };
}

/** The answer where no script says anything: an echo, or what the tools said. */
export function defaultStep(turns: readonly Turn[]): Step {
  const last = turns.at(-1);
  const results = turns.slice(turns.findLastIndex((turn) => turn.role === "assistant") + 1);
  const text =
    last !== undefined && last.results.length > 0
      ? `The tools say: ${results.map((turn) => turn.text).join(" | ")}`
      : `You said: ${lastUser(turns).text}`;
  return { kind: "say", text, reasoning: "", calls: [], options: {}, line: "" };
}
