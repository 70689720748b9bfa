/**
 * The one decision function for tool calls. Each rule looks at one concern and gives its answer; the strictest
 * answer wins, and a rule that fails counts as a refusal.
 */
import type { Grant } from "../domain/approval.ts";
import { type Autonomy, type Effect, reaches } from "../domain/autonomy.ts";
import type { Origin } from "../domain/run.ts";

export type Verdict =
  | { readonly kind: "allow" }
  | { readonly kind: "ask"; readonly reason: string }
  | { readonly kind: "deny"; readonly reason: string };

export interface CallFacts {
  readonly tool: string;
  readonly effect: Effect;
  readonly minAutonomy: Autonomy;
  /** What a standing grant would have to equal; null: no grant can cover the call. */
  readonly pattern: string | null;
  readonly autonomy: Autonomy;
  readonly grants: readonly Grant[];
  readonly origin: Origin;
}

type Rule = (facts: CallFacts) => Verdict;

const allow: Verdict = { kind: "allow" };
const deny = (reason: string): Verdict => ({ kind: "deny", reason });

const rules: readonly Rule[] = [
  function withinAutonomy({ tool, minAutonomy, autonomy }) {
    return reaches(autonomy, minAutonomy) ? allow : deny(`${tool} needs autonomy ${minAutonomy}`);
  },
  function readOnlyChangesNothing({ effect, autonomy }) {
    return autonomy === "read_only" && effect !== "none" ? deny("this agent may only read") : allow;
  },
  function originAllowsEffects({ effect, origin }) {
    return effect === "external" && !origin.effects
      ? deny("this request may not use tools with effects")
      : allow;
  },
  function externalEffectsAreAsked({ tool, effect, autonomy, pattern, grants, origin }) {
    if (effect !== "external" || autonomy === "full") return allow;
    if (pattern !== null && grants.some((grant) => grant.tool === tool && grant.pattern === pattern))
      return allow;
    if (!origin.interactive) return deny("nobody can be asked here");
    return { kind: "ask", reason: "it has effects outside the workspace" };
  },
];

/** Decides one call. Pure; the same facts always give the same verdict. */
export function decideCall(facts: CallFacts): Verdict {
  return rules.map((rule) => applyRule(rule, facts)).reduce(stricter, allow);
}

function applyRule(rule: Rule, facts: CallFacts): Verdict {
  try {
    return rule(facts);
  } catch (error) {
    return deny(`rule ${rule.name} failed: ${error instanceof Error ? error.message : "unknown"}`);
  }
}

const strictness = { allow: 0, ask: 1, deny: 2 } as const;

const stricter = (a: Verdict, b: Verdict): Verdict => (strictness[b.kind] > strictness[a.kind] ? b : a);
