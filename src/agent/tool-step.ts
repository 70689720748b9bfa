/** The tool calls of one answer: recorded, asked for, run, settled. Each result is on disk before it counts. */
import { type ApprovalId, type MessageId, newId } from "../domain/ids.ts";
import type { AssistantMessage } from "../domain/message.ts";
import type { Run } from "../domain/run.ts";
import { toError } from "../kernel/errors.ts";
import type { ToolResult } from "../tools/tool.ts";
import { type PlannedCall, outcomeOf } from "./call-planner.ts";
import type { LoopEvent } from "./loop.ts";
import { tracing } from "./model-step.ts";
import type { ModelAnswer } from "./provider.ts";
import type { AgentProfile, RunServices } from "./run-services.ts";

export interface ToolStep {
  readonly services: RunServices;
  readonly run: Run;
  readonly profile: AgentProfile;
  readonly step: number;
  readonly signal: AbortSignal;
}

/** The run's activation is over: another attempt, or an end written elsewhere, has taken its place. */
export class FencedError extends Error {
  override readonly name = "FencedError";
}

const limitReached = "Not run: the limit of tool calls for this turn is reached.";
export const interruptedResult =
  "Interrupted: the daemon stopped while this was running. It may or may not have taken effect; check before you repeat it.";
export const deniedByUser =
  "Denied: the user said no. Do not try the same in another way; ask what to do instead.";
export const expiredUnanswered = "Denied: nobody answered the question in time.";

/** Commits the answer with its calls. `refused`: the limit is reached, no call is run. */
export async function recordCalls(
  { services, run, step }: ToolStep,
  answer: ModelAnswer,
  planned: readonly PlannedCall[],
  options: { readonly starting: readonly number[]; readonly refused: boolean },
): Promise<LoopEvent> {
  const at = services.clock.now();
  const scrubbed = planned.map((call) => services.scrubber.scrubJsonText(call.arguments));
  const message: AssistantMessage = {
    role: "assistant",
    content: answer.text === "" ? null : answer.text,
    tool_calls: planned.map(({ id, tool }, index) => ({
      id,
      type: "function",
      function: { name: tool, arguments: scrubbed[index] ?? "{}" },
    })),
  };
  const recorded = await services.store.steps.record({
    runId: run.id,
    attempt: run.attempt,
    step,
    messageId: newId<MessageId>(at),
    wire: JSON.stringify(message),
    extra: answer.extra === undefined ? null : JSON.stringify(answer.extra),
    calls: planned.map(({ id, tool, effect, call, arguments: raw, result }, index) => ({
      callId: id,
      tool,
      effect,
      client: call.plan.kind === "client" && !options.refused,
      rawArguments: raw,
      scrubbedArguments: scrubbed[index] ?? "{}",
      result: options.refused ? { ok: false, text: limitReached } : scrubResult(services, result),
      started: options.starting.includes(call.index),
    })),
    usage: answer.usage,
    at,
  });
  if (recorded.kind === "refused") throw new FencedError(run.id);
  return { type: "recorded" };
}

/** Runs one call and commits its result. A throw of a tool is a defect of the tool, and a result for the model. */
export async function runCall(context: ToolStep, planned: PlannedCall): Promise<LoopEvent> {
  const { services, run, step } = context;
  const key = { runId: run.id, attempt: run.attempt, step, index: planned.call.index };
  if (planned.effect !== "none" && !planned.started) {
    const started = await services.store.steps.startCall({ ...key, at: services.clock.now() });
    if (started.kind === "refused") throw new FencedError(run.id);
  }
  const fields = { ...tracing(services, run), tool_name: planned.tool, call_id: planned.id };
  services.obs.events.toolCallStart({ ...fields, args: services.scrubber.scrubJsonText(planned.arguments) });
  const startedAt = services.clock.monotonic();
  const result = await execute(context, planned);
  context.signal.throwIfAborted();
  services.obs.events.toolCallResult({
    ...fields,
    duration_ms: services.clock.monotonic() - startedAt,
    success: result.ok,
  });
  return settleCall(context, planned, result);
}

/** Commits a result that needed no execution here. */
export async function settleCall(
  { services, run, step }: ToolStep,
  planned: PlannedCall,
  result: ToolResult,
): Promise<LoopEvent> {
  const { index } = planned.call;
  const text = cap(services.scrubber.scrubText(result.text), services.settings.maxResultBytes);
  const settled = await services.store.steps.settle({
    runId: run.id,
    attempt: run.attempt,
    step,
    index,
    result: { ok: result.ok, text },
    at: services.clock.now(),
  });
  if (settled.kind === "refused") throw new FencedError(run.id);
  return { type: "settled", index, outcome: outcomeOf(planned.tool, planned.arguments, text) };
}

/** Opens the question about one call; the run is `waiting` once this resolves. */
export async function askApproval(
  { services, run, step }: ToolStep,
  planned: PlannedCall,
  question: { readonly reason: string; readonly activeMs: number },
): Promise<ApprovalId> {
  const at = services.clock.now();
  const id = newId<ApprovalId>(at);
  const asked = await services.store.approvals.ask({
    id,
    call: { runId: run.id, attempt: run.attempt, step, index: planned.call.index },
    reason: question.reason,
    pattern: planned.prepared?.pattern ?? null,
    activeMs: question.activeMs,
    expiresAt: at + services.settings.approvalSeconds * 1000,
    at,
  });
  if (asked.kind === "refused") throw new FencedError(run.id);
  services.obs.events.approvalRequested({
    ...tracing(services, run),
    approval_id: id,
    tool_name: planned.tool,
    args: services.scrubber.scrubJsonText(planned.arguments),
  });
  return id;
}

async function execute({ run, profile, signal }: ToolStep, planned: PlannedCall): Promise<ToolResult> {
  if (planned.prepared === null) return { ok: false, text: `${planned.tool} cannot be run.` };
  try {
    return await planned.prepared.run({
      workspace: profile.workspace,
      agent: run.agent,
      sessionId: run.sessionId,
      runId: run.id,
      callId: planned.id,
      signal,
    });
  } catch (thrown) {
    return { ok: false, text: `${planned.tool} crashed: ${toError(thrown).message}` };
  }
}

const scrubResult = (services: RunServices, result: ToolResult | null): ToolResult | null =>
  result === null ? null : { ok: result.ok, text: services.scrubber.scrubText(result.text) };

/** Cuts at a character, not inside one. */
function cap(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text;
  const cut = new TextDecoder().decode(Buffer.from(text).subarray(0, maxBytes)).replace(/\uFFFD+$/, "");
  return `${cut}\n[cut: the result had ${Buffer.byteLength(text)} bytes, ${maxBytes} are shown]`;
}
