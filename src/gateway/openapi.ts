import { z } from "zod";
import { chatSchema } from "./chat-schema.ts";
import { objectSchemas } from "./openapi-objects.ts";

type Json = Readonly<Record<string, unknown>>;

/**
 * The OpenAPI 3.1 document of the routes, written by hand so that it says more than the code; a test compares
 * its paths with the routes, both ways. The chat request's schema is the one that requests are checked with.
 */
export const openApiDocument = (version: string): Json => ({
  openapi: "3.1.0",
  info: {
    title: "beamclaw",
    version,
    description: "AI agents behind an OpenAI-compatible API. The user's guide is docs/http-api.md.",
  },
  security: [{ token: [] }],
  tags: ["system", "chat", "sessions", "runs", "approvals"].map((name) => ({ name })),
  paths,
  components: {
    securitySchemes: { token: { type: "http", scheme: "bearer" } },
    schemas: { ChatRequest: chatRequestSchema(), ...objectSchemas },
  },
});

function chatRequestSchema(): Json {
  const { $schema: _, ...schema } = z.toJSONSchema(chatSchema(), { io: "input" });
  return schema;
}

const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });
const json = (schema: Json): Json => ({ "application/json": { schema } });
const ok = (description: string, schema: Json): Json => ({ description, content: json(schema) });
const listOf = (name: string): Json => ({
  type: "object",
  required: ["data", "next_cursor"],
  properties: { data: { type: "array", items: ref(name) }, next_cursor: { type: ["string", "null"] } },
});

const parameter = (
  place: "path" | "query" | "header",
  name: string,
  description: string,
  schema?: Json,
): Json => ({
  in: place,
  name,
  description,
  ...(place === "path" && { required: true }),
  schema: schema ?? { type: "string" },
});

const id = (what: string): Json => parameter("path", "id", `The ${what}'s id`);
const paging = [
  parameter("query", "cursor", "`next_cursor` of the former page"),
  parameter("query", "limit", "Entries a page", { type: "integer", minimum: 1, maximum: 200, default: 50 }),
];
const userHeader = parameter("header", "X-User-Id", "The person on whose behalf the request is made");
const sessionHeader = parameter(
  "header",
  "X-Session-Id",
  "A session's id or a name of your own; `none` forces a stateless run",
);
const keyHeader = parameter(
  "header",
  "Idempotency-Key",
  "The same key and body within 24 hours is the same run",
);

/** Refusals that any route with a token can answer; routes under /v1 speak OpenAI's shape. */
const refusals = Object.fromEntries(
  [
    ["400", "The request is not valid; the error names the field"],
    ["401", "No token, or one that is unknown, expired or revoked"],
    ["403", "The token lacks a scope"],
    ["404", "There is no such thing, or it is somebody else's"],
    ["429", "A limit; wait for Retry-After"],
    ["503", "Overload, a stop, or trouble with the store; wait for Retry-After"],
  ].map(([status, description]) => [status, ok(description ?? "", ref("Error"))]),
);
const conflict = (description: string): Json => ({ "409": ok(description, ref("Error")) });

interface Operation {
  readonly tag: string;
  readonly summary: string;
  readonly parameters?: readonly Json[];
  readonly body?: Json;
  readonly answers: Json;
  readonly open?: boolean;
}

const operation = ({ tag, summary, parameters, body, answers, open }: Operation): Json => ({
  tags: [tag],
  summary,
  ...(parameters !== undefined && { parameters }),
  ...(body !== undefined && { requestBody: { required: true, content: json(body) } }),
  ...(open === true && { security: [] }),
  responses: open === true ? answers : { ...answers, ...refusals },
});

const system = (summary: string, answers: Json, open = false): Json =>
  operation({ tag: "system", summary, answers, open });

const systemPaths: Json = {
  "/health": {
    get: system("Whether the process answers", { "200": ok("It does", ref("Health")) }, true),
  },
  "/ready": {
    get: system(
      "Whether work would succeed",
      { "200": ok("Ready", ref("Readiness")), "503": ok("Not ready, or draining", ref("Readiness")) },
      true,
    ),
  },
  "/metrics": {
    get: system("Prometheus metrics (scope metrics)", {
      "200": { description: "Text format 0.0.4", content: { "text/plain": { schema: { type: "string" } } } },
    }),
  },
  "/openapi.json": { get: system("This document", { "200": ok("OpenAPI 3.1", { type: "object" }) }, true) },
  "/v1/models": { get: system("The agents, as models", { "200": ok("Models", ref("ModelList")) }) },
  "/v1/models/{model}": {
    get: operation({
      tag: "system",
      summary: "One agent, as a model",
      parameters: [parameter("path", "model", "`beamclaw` or `beamclaw/<agent>`")],
      answers: { "200": ok("The model", ref("Model")) },
    }),
  },
};

const chatPaths: Json = {
  "/v1/chat/completions": {
    post: operation({
      tag: "chat",
      summary: "Say something to an agent",
      parameters: [sessionHeader, userHeader, keyHeader],
      body: ref("ChatRequest"),
      answers: {
        "200": {
          description: "The answer, or the question that it waits for; with `stream`, server-sent events",
          headers: Object.fromEntries(
            ["x-run-id", "x-session-id", "x-approval-id"].map((name) => [
              name,
              { schema: { type: "string" } },
            ]),
          ),
          content: { ...json(ref("ChatCompletion")), "text/event-stream": { schema: { type: "string" } } },
        },
        ...conflict("The Idempotency-Key was used with another body"),
        "413": ok("The body is too large", ref("Error")),
        "502": ok("The model's API answered badly", ref("Error")),
        "504": ok("A deadline passed", ref("Error")),
      },
    }),
  },
};

const sessionPaths: Json = {
  "/v1/sessions": {
    get: operation({
      tag: "sessions",
      summary: "Sessions, newest first",
      parameters: [...paging, userHeader],
      answers: { "200": ok("A page", listOf("Session")) },
    }),
  },
  "/v1/sessions/{id}": {
    get: operation({
      tag: "sessions",
      summary: "One session",
      parameters: [id("session"), userHeader],
      answers: { "200": ok("The session", ref("Session")) },
    }),
    delete: operation({
      tag: "sessions",
      summary: "Delete a session with its history",
      parameters: [id("session"), userHeader],
      answers: { "200": ok("Deleted", ref("Deleted")), ...conflict("The session has an open run") },
    }),
  },
  "/v1/sessions/{id}/messages": {
    get: operation({
      tag: "sessions",
      summary: "The history, oldest first",
      parameters: [id("session"), ...paging, userHeader],
      answers: { "200": ok("A page", listOf("Message")) },
    }),
  },
  "/v1/sessions/{id}/reset": {
    post: operation({
      tag: "sessions",
      summary: "Let the conversation start afresh; the history is kept",
      parameters: [id("session"), userHeader],
      answers: { "200": ok("Reset", ref("Reset")), ...conflict("The session has an open run") },
    }),
  },
};

const runPaths: Json = {
  "/v1/runs": {
    get: operation({
      tag: "runs",
      summary: "Runs, newest first",
      parameters: [
        ...paging,
        userHeader,
        parameter("query", "session_id", "Only of this session"),
        parameter("query", "state", "Only in these states, separated by commas"),
      ],
      answers: { "200": ok("A page", listOf("Run")) },
    }),
  },
  "/v1/runs/{id}": {
    get: operation({
      tag: "runs",
      summary: "One run",
      parameters: [id("run"), userHeader],
      answers: { "200": ok("The run", ref("Run")) },
    }),
  },
  "/v1/runs/{id}/cancel": {
    post: operation({
      tag: "runs",
      summary: "Stop a run",
      parameters: [id("run"), userHeader],
      answers: { "200": ok("The cancelled run", ref("Run")), ...conflict("The run has ended") },
    }),
  },
  "/v1/runs/{id}/events": {
    get: operation({
      tag: "runs",
      summary: "Follow a run; resumes without a gap",
      parameters: [
        id("run"),
        userHeader,
        parameter("header", "Last-Event-ID", "The last event that was seen"),
        parameter("query", "after", "The same, for clients that cannot set headers", { type: "integer" }),
      ],
      answers: {
        "200": {
          description: "Server-sent events; each `data` line is an Event",
          content: { "text/event-stream": { schema: { type: "string" } } },
        },
      },
    }),
  },
};

const approvalPaths: Json = {
  "/v1/approvals": {
    get: operation({
      tag: "approvals",
      summary: "Questions to a person, newest first",
      parameters: [
        ...paging,
        userHeader,
        parameter("query", "session_id", "Only of this session"),
        parameter("query", "state", "Only in these states, separated by commas"),
      ],
      answers: { "200": ok("A page", listOf("Approval")) },
    }),
  },
  "/v1/approvals/{id}": {
    get: operation({
      tag: "approvals",
      summary: "One question",
      parameters: [id("approval"), userHeader],
      answers: { "200": ok("The question", ref("Approval")) },
    }),
    post: operation({
      tag: "approvals",
      summary: "Answer a question (scope approvals)",
      parameters: [id("approval")],
      body: ref("Decision"),
      answers: { "200": ok("The answered question", ref("Approval")), ...conflict("It was answered before") },
    }),
  },
};

const paths: Json = { ...systemPaths, ...chatPaths, ...sessionPaths, ...runPaths, ...approvalPaths };
