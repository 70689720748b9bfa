import fc from "fast-check";
import type { InjectOptions } from "fastify";
import { describe, expect, test } from "vitest";
import { openGateway } from "./harness.ts";

const word = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.constantFrom("user", "assistant", "tool", "text", "image_url", "function", "none", "a", "", "__proto__"),
);
const anything = fc.jsonValue({ maxDepth: 3 });

/** Things that look like chat requests, with something wrong in most of them. */
const message = fc.record(
  {
    role: fc.oneof(fc.constantFrom("system", "developer", "user", "assistant", "tool"), word),
    content: fc.oneof(
      fc.string(),
      fc.array(fc.record({ type: word, text: word }, { requiredKeys: [] })),
      anything,
    ),
    tool_call_id: word,
    tool_calls: fc.oneof(
      fc.array(fc.record({ id: word, function: fc.record({ name: word, arguments: word }) }), {
        maxLength: 2,
      }),
      anything,
    ),
    name: word,
  },
  { requiredKeys: ["role"] },
);
const chatBody = fc.record(
  {
    model: fc.oneof(word, fc.constant("beamclaw/default")),
    messages: fc.oneof({ weight: 9, arbitrary: fc.array(message, { maxLength: 5 }) }, anything),
    stream: fc.oneof(fc.boolean(), anything),
    stream_options: anything,
    tools: anything,
    tool_choice: anything,
    stop: anything,
    session_id: fc.oneof(word, anything),
    user_id: fc.oneof(word, anything),
    metadata: anything,
  },
  { requiredKeys: [] },
);

const ascii = fc.stringMatching(/^[\x20-\x7e]{0,40}$/);
const headers = fc.record(
  {
    "x-session-id": ascii,
    "x-user-id": ascii,
    "idempotency-key": ascii,
    "content-type": ascii,
    "last-event-id": ascii,
    origin: ascii,
    accept: ascii,
    "x-forwarded-for": ascii,
    "x-request-id": ascii,
  },
  { requiredKeys: [] },
);
const piece = fc.oneof(
  fc.constantFrom(
    "v1",
    "runs",
    "sessions",
    "approvals",
    "models",
    "events",
    "cancel",
    "x",
    "%00",
    "%zz",
    "..",
    "*",
  ),
  fc.webSegment(),
);
const url = fc
  .tuple(fc.array(piece, { maxLength: 5 }), fc.webQueryParameters())
  .map(([pieces, query]) => `/${pieces.join("/")}${query === "" ? "" : `?${query}`}`);
const method = fc.constantFrom(
  "GET",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "HEAD",
  "OPTIONS",
) satisfies fc.Arbitrary<InjectOptions["method"]>;

describe("whatever a client sends", () => {
  test("as a chat request, it is never answered with 500, and a refusal names a code", async () => {
    const gateway = await openGateway();
    await fc.assert(
      fc.asyncProperty(chatBody, headers, async (payload, sent) => {
        const request = { method: "POST", url: "/v1/chat/completions", headers: sent, payload } as const;
        const response = await gateway.inject({ ...request, payload: JSON.stringify(payload) });
        expect(response.statusCode).toBeLessThan(500);
        if (response.statusCode !== 200) expect(response.json().error.code).toMatch(/^[a-z_]+$/);
        expect(response.headers["x-request-id"]).toBeDefined();
      }),
      { numRuns: 300 },
    );
    expect(gateway.obs.defects).toEqual([]);
  });

  test("as any request, it is never answered with 500", async () => {
    const gateway = await openGateway();
    await fc.assert(
      fc.asyncProperty(
        method,
        url,
        headers,
        fc.oneof(fc.string(), fc.json()),
        async (verb, path, sent, payload) => {
          const body = verb === "GET" || verb === "HEAD" ? {} : { payload };
          const response = await gateway.inject({ method: verb, url: path, headers: sent, ...body });
          expect(response.statusCode).toBeLessThan(500);
        },
      ),
      { numRuns: 300 },
    );
    expect(gateway.obs.defects).toEqual([]);
  });
});
