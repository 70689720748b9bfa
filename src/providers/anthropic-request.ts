import type { ModelRequest } from "../agent/provider.ts";
import type { ToolDefinition } from "../domain/message.ts";
import type { ModelOptions } from "../domain/run.ts";
import { anthropicTurns, type Block, type Turn } from "./anthropic-messages.ts";
import { asRecord, asText } from "./json-value.ts";
import { outputLimit } from "./openai-request.ts";

/** Tokens asked for where neither request nor entry says anything: the API wants a number. */
const DEFAULT_MAX_TOKENS = 8_192;
/** Everything up to a marked block is cached by the API for the next request that begins the same. */
const CACHED = { cache_control: { type: "ephemeral" } };

/**
 * The body of a Messages request, always streamed. Cache markers stand on the last tool, the last system text
 * and the last turn: the prefix that the next step of the conversation repeats.
 */
export function anthropicBody(
  model: string,
  request: ModelRequest,
  maxOutputTokens: number | undefined,
): Record<string, unknown> {
  const { system, messages, tools, options } = request;
  const maxTokens = outputLimit(options.maxTokens, maxOutputTokens) ?? DEFAULT_MAX_TOKENS;
  const blocks = system.filter((text) => text.trim() !== "").map((text): Block => ({ type: "text", text }));
  return {
    model,
    max_tokens: maxTokens,
    stream: true,
    ...(blocks.length > 0 && { system: markLast(blocks) }),
    messages: markLastTurn(anthropicTurns(messages)),
    ...(tools.length > 0 && { tools: markLast(tools.map(toolBlock)), ...toolChoice(options) }),
    ...sampling(options),
  };
}

const toolBlock = ({ name, description, parameters }: ToolDefinition): Block => ({
  name,
  description,
  input_schema: parameters,
});

function markLast(blocks: readonly Block[]): readonly Block[] {
  return blocks.map((block, index) => (index === blocks.length - 1 ? { ...block, ...CACHED } : block));
}

function markLastTurn(turns: readonly Turn[]): readonly object[] {
  return turns.map((turn, index) =>
    index === turns.length - 1 && turn.role === "user" ? { ...turn, content: markLast(turn.content) } : turn,
  );
}

/** OpenAI's `tool_choice` and `parallel_tool_calls`. */
function toolChoice({ toolChoice: choice, parallelToolCalls }: ModelOptions): object {
  const types: Readonly<Record<string, string>> = { auto: "auto", none: "none", required: "any" };
  const name = asText(asRecord(asRecord(choice)?.["function"])?.["name"]);
  const type = name === undefined ? types[asText(choice) ?? ""] : "tool";
  if (type === undefined && parallelToolCalls !== false) return {};
  const one = parallelToolCalls === false && type !== "none";
  return {
    tool_choice: {
      type: type ?? "auto",
      ...(name !== undefined && { name }),
      ...(one && { disable_parallel_tool_use: true }),
    },
  };
}

/** Temperatures end at 1 here; newer models refuse a temperature and a top_p together. */
function sampling({ temperature, topP, stop = [] }: ModelOptions): object {
  const stops = stop.filter((text) => text.trim() !== "");
  return {
    ...(temperature !== undefined && { temperature: Math.min(1, temperature) }),
    ...(topP !== undefined && temperature === undefined && { top_p: topP }),
    ...(stops.length > 0 && { stop_sequences: stops }),
  };
}
