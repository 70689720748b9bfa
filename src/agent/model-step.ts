/** One model call: what is sent, what is said meanwhile, what comes back. */
import type { ToolDefinition } from "../domain/message.ts";
import type { Run } from "../domain/run.ts";
import type { TranscriptEntry } from "../store/ports.ts";
import type { LiveRunWriter } from "./live-run.ts";
import type { Conclusion } from "./loop.ts";
import type { ModelActor } from "./model-actor.ts";
import type { ModelOutcome, ModelRequest } from "./provider.ts";
import type { AgentProfile, RunServices } from "./run-services.ts";
import { cutFor, estimateTokens, expandImages } from "./transcript.ts";

export interface ModelStep {
  readonly services: RunServices;
  readonly run: Run;
  readonly live: LiveRunWriter;
  readonly model: ModelActor;
  readonly profile: AgentProfile;
  readonly step: number;
  readonly conclusion: Conclusion | null;
  readonly signal: AbortSignal;
}

/** Shown when a model ends its turn without a word; silence is not an answer. */
export const emptyAnswer = "(The model gave an empty answer. Please ask again.)";

/** Calls the model, streaming the scrubbed text into `live`; `window_exceeded` before anything is sent. */
export async function callModel(
  ask: ModelStep,
): Promise<ModelOutcome | { readonly kind: "window_exceeded" }> {
  const request = await buildRequest(ask);
  if (request === null) return { kind: "window_exceeded" };
  const { services, run, live, model, profile, step } = ask;
  const startedAt = services.clock.monotonic();
  let firstTokenMs: number | null = null;
  const scrubber = services.scrubber.stream();
  live.begin(step);
  services.obs.events.llmRequest({
    ...tracing(services, run),
    model: profile.provider.model,
    provider: profile.provider.name,
    message_count: request.messages.length,
  });
  const outcome = await model.ask(
    request,
    (delta) => {
      firstTokenMs ??= services.clock.monotonic() - startedAt;
      if (delta.kind === "text") show(live, scrubber.push(delta.text));
    },
    ask.signal,
  );
  show(live, scrubber.end());
  services.obs.events.llmResponse({
    ...tracing(services, run),
    model: profile.provider.model,
    provider: profile.provider.name,
    duration_ms: services.clock.monotonic() - startedAt,
    first_token_ms: firstTokenMs,
    success: outcome.kind === "answered",
    error:
      outcome.kind === "failed" ? outcome.failure.code : outcome.kind === "cancelled" ? "cancelled" : null,
    usage: outcome.kind === "answered" ? outcome.answer.usage : null,
  });
  return outcome.kind === "answered" ? settleText(ask, outcome) : outcome;
}

/**
 * Shortens the visible history to the target by moving its start to a user message; what is cut stays stored.
 * False where nothing could be cut.
 */
export async function compact({
  services,
  run,
  profile,
}: Pick<ModelStep, "services" | "run" | "profile">): Promise<boolean> {
  if (run.ephemeral) return false;
  const entries = await services.store.sessions.transcript(run);
  const budget = (profile.provider.contextWindow * services.settings.compaction.targetPct) / 100;
  const cut = cutFor(entries, budget);
  const session = await services.store.sessions.get(run.sessionId);
  if (cut === 0 || session === null) return false;
  const moved = await services.store.sessions.moveStart(run.sessionId, {
    expected: session.startSeq,
    to: session.startSeq + cut,
    at: services.clock.now(),
  });
  services.obs.events.compactionComplete({
    ...tracing(services, run),
    before: entries.length,
    after: entries.length - cut,
  });
  return moved;
}

/** The fields that every business event of a run carries. */
export const tracing = (services: RunServices, run: Run) => ({
  session_id: run.sessionId,
  run_id: run.id,
  trace_id: services.traceId(run.id),
});

async function buildRequest(ask: ModelStep): Promise<ModelRequest | null> {
  const { services, run, profile, conclusion } = ask;
  const { store, settings } = services;
  const entries = await expandImages(await store.sessions.transcript(run), store.attachments);
  const system = [...profile.system(), ...run.input.system];
  const tools = conclusion === null ? offeredTools(ask) : [];
  if (conclusion !== null) system.push(conclusionNotes[conclusion]);
  const limit = (profile.provider.contextWindow * settings.compaction.thresholdPct) / 100;
  if (exceeds(limit, entries, system, tools)) return null;
  return {
    system,
    messages: entries,
    tools,
    options: run.input.options,
    traceId: services.traceId(run.id),
  };
}

/** A client's tool hides ours of the same name: names are unique to a model, and its calls go to the client. */
function offeredTools({ services, run, profile }: ModelStep): readonly ToolDefinition[] {
  const theirs = run.input.clientTools;
  const { effects, interactive } = run.input.origin;
  // What nobody could approve is not offered.
  const usable = effects && (interactive || profile.autonomy === "full");
  const own = services.tools.offered(profile.autonomy, usable);
  return [...own.filter((tool) => !theirs.some(({ name }) => name === tool.name)), ...theirs];
}

function exceeds(
  limit: number,
  entries: readonly TranscriptEntry[],
  system: readonly string[],
  tools: readonly ToolDefinition[],
): boolean {
  // Images weigh far less for a model than their base64 text does here; their entries are not counted.
  let characters = 0;
  for (const { wire, attachments } of entries) if (!attachments) characters += wire.length;
  const tokens = Math.ceil(characters / 4) + estimateTokens(system);
  // Writing out the tools only to measure them is worth it only where they could decide.
  return tokens > limit || (tokens > limit / 4 && tokens + estimateTokens([JSON.stringify(tools)]) > limit);
}

const conclusionNotes: Record<Conclusion, string> = {
  limit:
    "The limit of tool calls for this turn is reached. Do not call tools. Conclude now: tell the user what you found and did, and what is left.",
  repetition:
    "You made the same tool call with the same outcome several times. Do not call tools. Tell the user what you did and what keeps you from going on.",
  denials:
    "The user denied several tool calls in a row. Do not call tools. Tell the user what you could not do and ask how to go on.",
};

function show(live: LiveRunWriter, text: string): void {
  if (text !== "") live.append(text);
}

/**
 * The text that counts is the one that was shown: scrubbed, and never silence where the turn ends. Calls of a model
 * that was told to conclude are not made, so they are no answer either.
 */
function settleText(
  { live, conclusion }: Pick<ModelStep, "live" | "conclusion">,
  outcome: ModelOutcome & { kind: "answered" },
): ModelOutcome {
  const { answer } = outcome;
  const shown = live.segments.at(-1)?.text ?? "";
  if (shown === "" && (answer.calls.length === 0 || conclusion !== null)) {
    live.append(emptyAnswer);
    return { kind: "answered", answer: { ...answer, text: emptyAnswer } };
  }
  return { kind: "answered", answer: { ...answer, text: shown } };
}
