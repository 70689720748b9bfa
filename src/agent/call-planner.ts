/** Turns what a model asked for into planned calls: is the tool known, are the arguments valid, may it run? */
import { createHash } from "node:crypto";
import type { Grant } from "../domain/approval.ts";
import type { Autonomy, Effect } from "../domain/autonomy.ts";
import type { Run } from "../domain/run.ts";
import type { StoredCall } from "../store/ports.ts";
import type { PreparedCall, Tool } from "../tools/tool.ts";
import type { Call, Outcome } from "./loop.ts";
import { decideCall, type Verdict } from "./policy.ts";
import type { ModelCall } from "./provider.ts";

export interface PlannedCall {
  readonly call: Call;
  readonly id: string;
  readonly tool: string;
  readonly arguments: string;
  readonly effect: Effect;
  /** Null where nothing is to be executed here. */
  readonly prepared: PreparedCall | null;
  /** Given where the plan is `settled` from the start. */
  readonly result: { readonly ok: boolean; readonly text: string } | null;
  /** Whether its start is on disk already. */
  readonly started: boolean;
}

export interface PlanContext {
  readonly run: Run;
  readonly autonomy: Autonomy;
  readonly tools: { get(name: string): Tool | undefined };
  readonly grants: readonly Grant[];
}

export const deniedPrefix = "Denied: ";

/** Plans the calls of a fresh answer. */
export function planCalls(calls: readonly ModelCall[], context: PlanContext): readonly PlannedCall[] {
  return calls.map((call, index) => planCall(call, index, context, false));
}

/** Plans what is left of a step after a restart or a decision. */
export function replanCalls(calls: readonly StoredCall[], context: PlanContext): readonly PlannedCall[] {
  return calls.map((stored) => {
    const call = { id: stored.callId, name: stored.tool, arguments: stored.arguments };
    if (stored.client) return clientCall(call, stored.index);
    if (stored.result !== null) return settledCall(call, stored.index, stored.effect, stored.result);
    if (stored.state === "started" && stored.effect !== "none") {
      return {
        ...bare(call, stored.index),
        effect: stored.effect,
        call: pending(stored.index, { kind: "interrupted" }),
      };
    }
    return planCall(call, stored.index, context, stored.approved);
  });
}

/** Identifies a call and its outcome together, so that endless repetition can be seen. */
export function outcomeOf(tool: string, args: string, text: string): Outcome {
  const digest = createHash("sha256").update(`${tool}\0${args}\0${text}`).digest("base64url");
  return { digest, denied: text.startsWith(deniedPrefix) };
}

function planCall(call: ModelCall, index: number, context: PlanContext, approved: boolean): PlannedCall {
  if (context.run.input.clientTools.some((tool) => tool.name === call.name)) return clientCall(call, index);
  const tool = context.tools.get(call.name);
  if (tool === undefined) return refusedCall(call, index, `There is no tool named ${call.name}.`);
  const prepared = tool.prepare(call.arguments);
  if (prepared.kind === "invalid") return refusedCall(call, index, prepared.message);
  const verdict = approved ? ({ kind: "allow" } as const) : judge(tool, prepared, context);
  if (verdict.kind === "deny") return refusedCall(call, index, `${deniedPrefix}${verdict.reason}.`);
  const plan =
    verdict.kind === "ask"
      ? ({ kind: "ask", reason: verdict.reason } as const)
      : ({ kind: "run", alone: prepared.effect !== "none" } as const);
  return { ...bare(call, index), effect: prepared.effect, prepared, call: pending(index, plan) };
}

const judge = (tool: Tool, prepared: PreparedCall, { run, autonomy, grants }: PlanContext): Verdict =>
  decideCall({
    tool: tool.definition.name,
    effect: prepared.effect,
    minAutonomy: tool.minAutonomy,
    pattern: prepared.pattern,
    autonomy,
    grants,
    origin: run.input.origin,
  });

const bare = (call: ModelCall, index: number): PlannedCall => ({
  call: pending(index, { kind: "client" }),
  id: call.id,
  tool: call.name,
  arguments: call.arguments,
  effect: "none",
  prepared: null,
  result: null,
  started: false,
});

const clientCall = bare;

const refusedCall = (call: ModelCall, index: number, text: string): PlannedCall =>
  settledCall(call, index, "none", { ok: false, text });

function settledCall(
  call: ModelCall,
  index: number,
  effect: Effect,
  result: { readonly ok: boolean; readonly text: string },
): PlannedCall {
  const outcome = outcomeOf(call.name, call.arguments, result.text);
  return {
    ...bare(call, index),
    effect,
    result,
    call: { index, plan: { kind: "settled", outcome }, status: "settled" },
  };
}

const pending = (index: number, plan: Call["plan"]): Call => ({ index, plan, status: "pending" });
