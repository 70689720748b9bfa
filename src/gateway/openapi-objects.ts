type Schema = Readonly<Record<string, unknown>>;

const text = { type: "string" } as const;
const integer = { type: "integer" } as const;
const time = { type: "string", format: "date-time" } as const;
const orNull = (schema: { readonly type: string }): Schema => ({ ...schema, type: [schema.type, "null"] });
const oneOf = (...values: readonly string[]): Schema => ({ type: "string", enum: values });

/** An object whose members are all there; optional ones are listed apart. */
const object = (properties: Schema, optional: Schema = {}): Schema => ({
  type: "object",
  required: Object.keys(properties),
  properties: { ...properties, ...optional },
});

const usage = object({ prompt_tokens: integer, completion_tokens: integer, total_tokens: integer });
const toolCall = object({
  id: text,
  type: oneOf("function"),
  function: object({ name: text, arguments: text }),
});

/** The objects of `views.ts` and `chat-objects.ts`, as JSON Schema; tests validate real answers with these. */
export const objectSchemas: Readonly<Record<string, Schema>> = {
  Error: {
    description: "Under /v1 OpenAI's envelope, elsewhere the text and the code.",
    oneOf: [
      object({ error: object({ message: text, type: text, param: orNull(text), code: text }) }),
      object({ error: text, code: text }),
    ],
  },
  Health: object({ status: oneOf("ok"), ts: integer }),
  Readiness: object({
    status: oneOf("ready", "not_ready", "draining"),
    checks: {
      type: "object",
      additionalProperties: object({ ok: { type: "boolean" } }, { detail: text }),
    },
  }),
  Model: object({ id: text, object: oneOf("model"), created: integer, owned_by: text }),
  ModelList: object({
    object: oneOf("list"),
    data: { type: "array", items: { $ref: "#/components/schemas/Model" } },
  }),
  ChatCompletion: object(
    {
      id: text,
      object: oneOf("chat.completion"),
      created: integer,
      model: text,
      choices: {
        type: "array",
        items: object({
          index: integer,
          message: object(
            { role: oneOf("assistant"), content: orNull(text), refusal: { type: "null" } },
            { tool_calls: { type: "array", items: toolCall } },
          ),
          logprobs: { type: "null" },
          finish_reason: oneOf("stop", "length", "tool_calls", "content_filter"),
        }),
      },
      usage,
    },
    { approval_id: text },
  ),
  Session: object({
    id: text,
    user: text,
    agent: text,
    channel: text,
    created_at: time,
    updated_at: time,
    message_count: integer,
  }),
  Message: object(
    {
      id: text,
      seq: integer,
      run_id: orNull(text),
      created_at: time,
      in_context: { type: "boolean" },
      role: oneOf("system", "user", "assistant", "tool"),
      content: { type: ["string", "array", "null"] },
    },
    { name: text, tool_calls: { type: "array", items: toolCall }, tool_call_id: text },
  ),
  Run: object({
    id: text,
    session_id: text,
    user: text,
    agent: text,
    kind: text,
    state: oneOf("queued", "running", "waiting", "retrying", "completed", "failed", "cancelled", "expired"),
    created_at: time,
    started_at: orNull(time),
    ended_at: orNull(time),
    finish_reason: orNull(text),
    approval_id: orNull(text),
    error: { oneOf: [{ type: "null" }, object({ code: text, message: text })] },
    usage,
    output: orNull(text),
  }),
  Approval: object({
    id: text,
    run_id: text,
    session_id: text,
    tool: text,
    arguments: text,
    reason: text,
    pattern: orNull(text),
    state: oneOf("pending", "approved", "denied", "expired", "withdrawn"),
    decided_by: orNull(text),
    created_at: time,
    decided_at: orNull(time),
    expires_at: time,
  }),
  Decision: object({ decision: oneOf("approve", "deny", "always") }),
  Deleted: object({ id: text, deleted: { type: "boolean" } }),
  Reset: object({ id: text, reset: { type: "boolean" } }),
  Event: object(
    { type: text, session_id: text, run_id: orNull(text), ts: time, data: { type: "object" } },
    { seq: integer },
  ),
};
