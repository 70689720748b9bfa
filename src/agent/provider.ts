import type { FinishReason, ModelOptions } from "../domain/run.ts";
import type { ToolDefinition, Usage } from "../domain/message.ts";

/**
 * The port to a model. Adapters live in `providers/`; retries, concurrency limits and fallbacks are
 * decorators around an adapter, so that each adapter stays naive.
 */
export interface Provider {
  readonly name: string;
  readonly model: string;
  /** Tokens; decides when a conversation has to be shortened. */
  readonly contextWindow: number;
  /**
   * Asks the model once. Text arrives through `onDelta` as it is produced, then the whole answer is
   * returned. Never rejects: every failure is an outcome. After `signal` aborts the outcome is `cancelled`
   * within a second, and the connection is closed.
   */
  complete(
    request: ModelRequest,
    onDelta: (delta: ModelDelta) => void,
    signal: AbortSignal,
  ): Promise<ModelOutcome>;
}

export interface ModelRequest {
  /** System texts, stable ones first. An adapter may merge them. */
  readonly system: readonly string[];
  /** The conversation in order, attachments already expanded. */
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly ToolDefinition[];
  readonly options: ModelOptions;
  /** W3C trace id (32 hex digits) of the run; goes out as `traceparent`. */
  readonly traceId: string;
}

/** One entry of the conversation: ready-made JSON of a `WireMessage`, sent as it is. */
export interface ModelMessage {
  readonly wire: string;
  /** JSON of what a provider gave as `extra` beside this message; null where nothing was given. */
  readonly extra: string | null;
}

/** `text` is part of the answer; `reasoning` is the model's thinking, which is not. */
export interface ModelDelta {
  readonly kind: "text" | "reasoning";
  readonly text: string;
}

export type ModelOutcome =
  | { readonly kind: "answered"; readonly answer: ModelAnswer }
  | { readonly kind: "failed"; readonly failure: ModelFailure }
  | { readonly kind: "cancelled" };

export interface ModelAnswer {
  /** The whole text; equals the concatenated text deltas. */
  readonly text: string;
  readonly calls: readonly ModelCall[];
  readonly finishReason: FinishReason;
  readonly usage: Usage;
  /** What only this provider understands and wants back (signed thinking blocks), as JSON; kept beside the message. */
  readonly extra?: unknown;
}

export interface ModelCall {
  /** Unique within the run; made up by the adapter where the provider sends none or repeats one. */
  readonly id: string;
  readonly name: string;
  /** JSON text as the model wrote it; may be malformed. */
  readonly arguments: string;
}

/** Classified once, here; nobody downstream looks at the wording. */
export interface ModelFailure {
  readonly code:
    | "provider_unavailable"
    | "provider_rate_limited"
    | "provider_rejected"
    | "provider_auth"
    | "provider_bad_answer"
    | "provider_interrupted"
    | "provider_timeout"
    | "context_too_long";
  /** For people; scrubbed, at most 500 characters, without the provider's raw body. */
  readonly message: string;
  /** Whether another attempt, or another model, may succeed. */
  readonly retryable: boolean;
  readonly retryAfterSeconds?: number;
  /** Whether any delta had been passed on: then nobody may retry silently. */
  readonly started: boolean;
  /** Text passed on before the failure; "" where none. */
  readonly partial: string;
}
