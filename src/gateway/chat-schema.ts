import { z } from "zod";
import { lazily } from "../kernel/lazily.ts";

/**
 * The request of `POST /v1/chat/completions` as OpenAI publishes it, as far as it concerns us: fields that are
 * not named here are ignored, `null` is the same as absent, and what we cannot do is refused by name. Counts
 * are bounded here; sizes are bounded by `gateway.bodyLimitBytes`.
 */

const MOST_MESSAGES = 4000;
const MOST_PARTS = 256;
const MOST_TOOLS = 128;
const MOST_STOPS = 16;
const MOST_TOKENS = 10_000_000;

const toolName = lazily(() =>
  z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, "letters, digits, _ and -; at most 64 of them"),
);
const callId = lazily(() => z.string().min(1).max(256));
const absent = (hint: string) => z.null({ error: hint }).optional();

const textPart = lazily(() => z.object({ type: z.literal("text"), text: z.string() }));
const refusalPart = lazily(() => z.object({ type: z.literal("refusal"), refusal: z.string() }));
const imagePart = lazily(() =>
  z.object({
    type: z.literal("image_url"),
    image_url: z.object({
      // Never `attachment:`, which is how stored histories name files of other people too.
      url: z
        .string()
        .regex(
          /^(https?:\/\/\S|data:image\/[a-z0-9.+-]+;base64,[a-z0-9+/]+={0,2}$)/i,
          "not an http(s) URL, nor data:image/…;base64,… with valid base64",
        ),
      detail: z.enum(["auto", "low", "high"]).nullish(),
    }),
  }),
);

const partsOf = <T extends z.core.SomeType>(part: T) => z.array(part).min(1).max(MOST_PARTS);
const textContent = lazily(() => z.union([z.string(), partsOf(textPart())]));
const userContent = lazily(() =>
  z.union([z.string(), partsOf(z.discriminatedUnion("type", [textPart(), imagePart()]))]),
);
const assistantContent = lazily(() =>
  z.union([z.string(), partsOf(z.discriminatedUnion("type", [textPart(), refusalPart()]))]),
);

const toolCall = lazily(() =>
  z.object({
    id: callId(),
    type: z.literal("function").nullish(),
    function: z.object({ name: toolName(), arguments: z.string() }),
  }),
);

const message = lazily(() =>
  z.discriminatedUnion("role", [
    z.object({ role: z.literal("system"), content: textContent() }),
    z.object({ role: z.literal("developer"), content: textContent() }),
    z.object({ role: z.literal("user"), content: userContent(), name: z.string().max(256).nullish() }),
    z.object({
      role: z.literal("assistant"),
      content: assistantContent().nullish(),
      tool_calls: z.array(toolCall()).max(MOST_TOOLS).nullish(),
      function_call: absent("use tool_calls instead"),
    }),
    z.object({ role: z.literal("tool"), tool_call_id: callId(), content: textContent() }),
  ]),
);

const tool = lazily(() =>
  z.object({
    type: z.literal("function", { error: "only function tools are supported" }),
    function: z.object({
      name: toolName(),
      description: z.string().nullish(),
      parameters: z.record(z.string(), z.unknown()).nullish(),
    }),
  }),
);

const toolChoice = lazily(() =>
  z.union([
    z.enum(["none", "auto", "required"]),
    z.object({ type: z.literal("function"), function: z.object({ name: toolName() }) }),
  ]),
);

const tokenCount = lazily(() => z.int().min(1).max(MOST_TOKENS).nullish());

export const chatSchema = lazily(() =>
  z.object({
    model: z.string().max(256).nullish(),
    messages: z.array(message()).min(1).max(MOST_MESSAGES),
    stream: z.boolean().nullish(),
    stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
    temperature: z.number().min(0).max(2).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    max_tokens: tokenCount(),
    max_completion_tokens: tokenCount(),
    stop: z.union([z.string().min(1), z.array(z.string().min(1)).max(MOST_STOPS)]).nullish(),
    seed: z.int().nullish(),
    n: z.literal(1, { error: "only one choice (n = 1) is supported" }).nullish(),
    response_format: z.looseObject({ type: z.enum(["text", "json_object", "json_schema"]) }).nullish(),
    tools: z.array(tool()).max(MOST_TOOLS).nullish(),
    tool_choice: toolChoice().nullish(),
    parallel_tool_calls: z.boolean().nullish(),
    user: z.string().max(512).nullish(),
    metadata: z.record(z.string().max(64), z.string().max(512)).nullish(),
    functions: absent("use tools instead"),
    function_call: absent("use tool_choice instead"),
    agent_id: z.string().max(64).nullish(),
    session_id: z.string().max(128).nullish(),
    user_id: z.string().max(256).nullish(),
  }),
);

export type ChatBody = z.infer<ReturnType<typeof chatSchema>>;
export type ChatBodyMessage = z.infer<ReturnType<typeof message>>;
