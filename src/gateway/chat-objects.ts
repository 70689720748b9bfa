import type { Ending } from "../agent/live-run.ts";
import type { Approval } from "../domain/approval.ts";
import type { Usage } from "../domain/message.ts";
import type { FinishReason, Run } from "../domain/run.ts";
import { modelOf } from "./chat-request.ts";

/** What a run that has come to its end, or to a question, says to the client that waits for it. */
export interface Outcome {
  readonly run: Run;
  /** The final text; null where the answer is tool calls alone. */
  readonly text: string | null;
  readonly finishReason: FinishReason;
  readonly approval: Approval | null;
}

/**
 * The outcome of an ending that is an answer; null for one that is an error. `mayDecide` says whether the
 * client that reads it may answer a question.
 */
export function outcomeOf(ending: Ending, mayDecide: boolean): Outcome | null {
  const { run } = ending;
  if (ending.kind === "waiting") {
    const { approval } = ending;
    return { run, text: questionOf(approval, mayDecide), finishReason: "stop", approval };
  }
  if (ending.kind === "interrupted") return null;
  if (run.state === "completed") {
    const silent = run.clientCalls.length > 0 ? null : "";
    return { run, text: run.output || silent, finishReason: run.finishReason ?? "stop", approval: null };
  }
  if (run.state === "cancelled") {
    const text = run.output ? `${run.output}\n\n${CANCELLED}` : CANCELLED;
    return { run, text, finishReason: "stop", approval: null };
  }
  return null;
}

const CANCELLED = "[cancelled]";
/** Characters of a call's arguments that a question shows. */
const SHOWN_ARGUMENTS = 2000;

/** The question to a person, in words. Who asked may not be one who may decide; then it says who is. */
function questionOf(approval: Approval, mayDecide: boolean): string {
  const shown =
    approval.arguments.length > SHOWN_ARGUMENTS
      ? `${approval.arguments.slice(0, SHOWN_ARGUMENTS)}…`
      : approval.arguments;
  const always = approval.pattern === null ? "" : ` /always allows \`${approval.pattern}\` in this session.`;
  const choices = approval.pattern === null ? "/yes or /no" : "/yes, /no or /always";
  const who = mayDecide ? "" : " as the owner, or with a token that has the scope approvals";
  return [
    `Approval needed for ${approval.tool}: ${approval.reason}`,
    shown,
    `Reply ${choices}${who}.${always}`,
  ].join("\n\n");
}

export const completionId = (run: Run): string => `chatcmpl-${run.id}`;

const createdAt = (run: Run): number => Math.floor(run.createdAt / 1000);

/** OpenAI's `CreateChatCompletionResponse`, as JSON text. */
export function completionOf({ run, text, finishReason, approval }: Outcome): string {
  return JSON.stringify({
    id: completionId(run),
    object: "chat.completion",
    created: createdAt(run),
    model: modelOf(run.agent),
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: text,
          refusal: null,
          ...(run.clientCalls.length > 0 && { tool_calls: run.clientCalls.map(callOf) }),
        },
        logprobs: null,
        finish_reason: finishReason,
      },
    ],
    usage: usageOf(run.usage),
    ...(approval !== null && { approval_id: approval.id }),
  });
}

type ClientCall = Run["clientCalls"][number];

const callOf = ({ id, name, arguments: args }: ClientCall) => ({
  id,
  type: "function",
  function: { name, arguments: args },
});

export function usageOf(usage: Usage) {
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    total_tokens: usage.promptTokens + usage.completionTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens ?? 0 },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
  };
}

/**
 * Builds the frames of one streamed completion (OpenAI's `CreateChatCompletionStreamResponse`). Everything
 * that all frames share is written once: a frame costs one string concatenation and one JSON string.
 */
export class ChunkFrames {
  readonly #prefix: string;
  readonly #choice: string;
  readonly #includeUsage: boolean;

  constructor(run: Run, includeUsage: boolean) {
    const shared = { id: completionId(run), object: "chat.completion.chunk", created: createdAt(run) };
    const start = JSON.stringify({ ...shared, model: modelOf(run.agent) }).slice(0, -1);
    // With `include_usage` every chunk has the member, null in all but the last.
    this.#prefix = `data: ${start}${includeUsage ? ',"usage":null' : ""}`;
    this.#choice = `${this.#prefix},"choices":[{"index":0,"delta":`;
    this.#includeUsage = includeUsage;
  }

  role(): string {
    return this.#frame('{"role":"assistant","content":"","refusal":null}', null);
  }

  text(text: string): string {
    return this.#frame(`{"content":${JSON.stringify(text)}}`, null);
  }

  call(index: number, call: ClientCall): string {
    return this.#frame(JSON.stringify({ tool_calls: [{ index, ...callOf(call) }] }), null);
  }

  /** The last chunk with a choice, the usage chunk where it was asked for, and the end mark. */
  finish({ run, finishReason, approval }: Outcome): string {
    const extra = approval === null ? "" : `,"approval_id":${JSON.stringify(approval.id)}`;
    const last = this.#frame("{}", finishReason, extra);
    return `${last}${this.#includeUsage ? this.#usage(run.usage) : ""}data: [DONE]\n\n`;
  }

  #frame(delta: string, finishReason: FinishReason | null, extra = ""): string {
    const reason = finishReason === null ? "null" : `"${finishReason}"`;
    return `${this.#choice}${delta},"logprobs":null,"finish_reason":${reason}}]${extra}}\n\n`;
  }

  #usage(usage: Usage): string {
    const prefix = this.#prefix.replace(',"usage":null', "");
    return `${prefix},"choices":[],"usage":${JSON.stringify(usageOf(usage))}}\n\n`;
  }
}
