import { describe, expect, test } from "vitest";
import { verifies } from "../support/verifies.ts";
import { bearer, chat, coder, openGateway } from "./harness.ts";

const session = { "x-session-id": "s1" };

describe("a synchronous answer", () => {
  test("is a complete completion object with the run's and the session's id", async () => {
    const gateway = await openGateway();
    const response = await gateway.inject(chat("hi", { user_id: "bob" }));
    expect(response.statusCode).toBe(200);
    const [run] = gateway.store.savedRuns.values();
    expect(response.headers).toMatchObject({
      "x-run-id": run?.id,
      "x-session-id": run?.sessionId,
      "content-type": "application/json; charset=utf-8",
    });
    expect(response.json()).toMatchObject({
      id: `chatcmpl-${run?.id}`,
      object: "chat.completion",
      created: Math.floor((run?.createdAt ?? 0) / 1000),
      model: "beamclaw/default",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "Hello", refusal: null },
          logprobs: null,
          finish_reason: "stop",
        },
      ],
      usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
    });
  });

  verifies(["W4"], "the answer is the final text, not what was said before a tool ran", async () => {
    const gateway = await openGateway();
    gateway.conversations.script = (run) => {
      run.begin(0).say("Let me look that up.");
      run.answer("It is 42.");
    };
    const response = await gateway.inject(chat("what is it?"));
    expect(response.json().choices[0].message.content).toBe("It is 42.");
  });

  test("client tool calls end the turn without text", async () => {
    const gateway = await openGateway();
    const calls = [{ id: "call_9", name: "weather", arguments: '{"city":"Bern"}' }];
    gateway.conversations.script = (run) =>
      run.answer("", { finishReason: "tool_calls", clientCalls: calls });
    const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object" } } }];
    const response = await gateway.inject(chat("weather?", { tools }));
    expect(response.json().choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: {
        content: null,
        tool_calls: [
          { id: "call_9", type: "function", function: { name: "weather", arguments: '{"city":"Bern"}' } },
        ],
      },
    });
    expect(gateway.conversations.submissions[0]?.input.clientTools).toEqual([
      { name: "weather", description: "", parameters: { type: "object" } },
    ]);
  });

  test("a run that was cancelled keeps what it had said, marked", async () => {
    const gateway = await openGateway();
    gateway.conversations.script = (run) => run.begin(0).say("Once upon").cancel("user");
    const response = await gateway.inject(chat("a story", {}, session));
    expect(response.json().choices[0].message.content).toBe("Once upon\n\n[cancelled]");
  });
});

describe("a question to a person", () => {
  test("is the answer, in words, with the approval's id; the next message decides and gets the rest", async () => {
    const gateway = await openGateway();
    gateway.conversations.script = (run) => {
      if (run.saved.state === "running" && gateway.store.savedApprovals.size > 0) run.answer("Done.");
      else run.ask({ pattern: "ls" });
    };
    const asked = await gateway.inject(chat("list files", {}, session));
    const [approval] = gateway.store.savedApprovals.values();
    expect(asked.headers["x-approval-id"]).toBe(approval?.id);
    const { choices, approval_id: id } = asked.json();
    expect(id).toBe(approval?.id);
    expect(choices[0].finish_reason).toBe("stop");
    expect(choices[0].message.content).toContain('{"command":"ls"}');
    expect(choices[0].message.content).toContain("/yes, /no or /always");

    const answered = await gateway.inject(chat("/yes", {}, session));
    expect(answered.headers["x-run-id"]).toBe(asked.headers["x-run-id"]);
    expect(answered.json().choices[0].message.content).toBe("Done.");
  });

  test("/always is offered only where something can be allowed for good", async () => {
    const gateway = await openGateway();
    gateway.conversations.script = (run) => void run.ask({ pattern: null });
    const asked = await gateway.inject(chat("list files", {}, session));
    expect(asked.json().choices[0].message.content).toContain("/yes or /no");
    expect(asked.json().choices[0].message.content).not.toContain("/always");
  });

  test("a token without the scope learns who may answer, and its words do not decide", async () => {
    const gateway = await openGateway();
    gateway.conversations.script = (run) => void run.ask();
    const headers = { ...(await gateway.token("web", ["chat"])), ...session };
    const asked = await gateway.inject(chat("list files", {}, headers));
    expect(asked.json().choices[0].message.content).toContain("scope approvals");
    await gateway.inject(chat("/yes", {}, headers));
    expect(gateway.conversations.submissions.map(({ mayDecide }) => mayDecide)).toEqual([false, false]);
  });
});

describe("a run that fails", () => {
  test.each([
    ["provider_unavailable", 503],
    ["provider_rate_limited", 503],
    ["provider_bad_answer", 502],
    ["provider_timeout", 504],
    ["context_too_long", 400],
    ["something_new", 500],
  ])("%s answers %i in OpenAI's envelope", async (code, status) => {
    const gateway = await openGateway();
    gateway.conversations.script = (run) => run.fail({ code, message: "no luck", retryAfterSeconds: 17 });
    const response = await gateway.inject(chat("hi"));
    expect(response.statusCode).toBe(status);
    expect(response.headers["retry-after"]).toBe(status === 503 ? "17" : undefined);
    expect(response.headers["x-run-id"]).toBeDefined();
    expect(response.json().error).toMatchObject({ message: expect.stringContaining("no luck"), param: null });
  });

  test("one that this process cannot go on with says so and names the run", async () => {
    const gateway = await openGateway();
    gateway.conversations.script = (run) => run.interrupt({ code: "shutting_down", message: "stopping" });
    const response = await gateway.inject(chat("hi"));
    expect(response.statusCode).toBe(503);
    expect(response.headers["retry-after"]).toBeDefined();
  });

  test.each([
    ["queue_full", 429],
    ["overloaded", 503],
    ["store_unavailable", 503],
    ["idempotency_conflict", 409],
  ] as const)("a submission refused with %s answers %i", async (code, status) => {
    const gateway = await openGateway();
    gateway.conversations.refusal = { kind: "refused", code, message: "no" };
    const response = await gateway.inject(chat("hi"));
    expect(response.statusCode).toBe(status);
    expect(response.json().error.code).toBe(code);
    expect(response.headers["retry-after"] !== undefined).toBe(status !== 409);
  });
});

describe("Idempotency-Key", () => {
  const key = { "idempotency-key": "k1" };

  test("the same request again is the same run, as a stream too", async () => {
    const gateway = await openGateway();
    const first = await gateway.inject(chat("hi", {}, key));
    const again = await gateway.inject(chat("hi", {}, key));
    expect(again.headers["x-run-id"]).toBe(first.headers["x-run-id"]);
    expect(again.json()).toEqual(first.json());
    expect(gateway.store.savedRuns.size).toBe(1);
  });

  test("another body, or another person, is a conflict", async () => {
    const gateway = await openGateway();
    await gateway.inject(chat("hi", {}, key));
    expect((await gateway.inject(chat("ho", {}, key))).statusCode).toBe(409);
    const asBob = await gateway.inject(chat("hi", {}, { ...key, "x-user-id": "bob" }));
    expect(asBob.statusCode).toBe(409);
  });

  test("keys of different tokens have nothing to do with each other", async () => {
    const gateway = await openGateway();
    const [a, b] = [await gateway.token("a", ["chat"]), await gateway.token("b", ["chat"])];
    const first = await gateway.inject(chat("hi", {}, { ...key, ...a }));
    const second = await gateway.inject(chat("hi", {}, { ...key, ...b }));
    expect(second.headers["x-run-id"]).not.toBe(first.headers["x-run-id"]);
  });

  test("a waiting run replays its question", async () => {
    const gateway = await openGateway();
    gateway.conversations.script = (run) => void run.ask();
    const first = await gateway.inject(chat("hi", {}, { ...key, ...session }));
    const again = await gateway.inject(chat("hi", {}, { ...key, ...session }));
    expect(again.json().choices).toEqual(first.json().choices);
    expect(again.headers["x-approval-id"]).toBe(first.headers["x-approval-id"]);
  });

  test("a key that is no header text is refused", async () => {
    const gateway = await openGateway();
    const response = await gateway.inject(chat("hi", {}, { "idempotency-key": "k".repeat(256) }));
    expect(response.json().error).toMatchObject({ code: "invalid_request", param: "idempotency-key" });
  });
});

describe("what is submitted", () => {
  test("a request that names nobody is stateless; effects need the scope tools", async () => {
    const gateway = await openGateway();
    await gateway.inject(chat("hi", { user: "recorded only" }, await gateway.token("plain", ["chat"])));
    await gateway.inject(chat("hi", {}, await gateway.token("trusted", ["chat", "tools"])));
    const [plain, trusted] = gateway.conversations.submissions;
    expect(plain).toMatchObject({ sessionId: null, channel: "http", principal: "api:plain/anonymous" });
    expect(plain?.input.origin).toEqual({
      channel: "http",
      token: "plain",
      interactive: false,
      effects: false,
    });
    expect(trusted?.input.origin.effects).toBe(true);
  });

  test("a named session is stateful; `none` forces a stateless run", async () => {
    const gateway = await openGateway();
    await gateway.inject(chat("hi", { session_id: "mine" }));
    await gateway.inject(chat("hi", { session_id: "mine" }, { "x-session-id": "none" }));
    const [named, stateless] = gateway.conversations.submissions;
    expect(named).toMatchObject({
      sessionId: "mine",
      input: { origin: { interactive: true, effects: true } },
    });
    expect(stateless?.sessionId).toBeNull();
  });

  test("options go to the model under our names, absent ones stay absent", async () => {
    const gateway = await openGateway();
    const ignored = { logit_bias: { 1: 2 }, metadata: { a: "b" }, store: true };
    const body = {
      ...ignored,
      temperature: 0.5,
      top_p: null,
      max_tokens: 5,
      max_completion_tokens: 9,
      stop: "END",
      seed: 1,
      response_format: { type: "json_object" },
      tool_choice: "auto",
      parallel_tool_calls: false,
    };
    await gateway.inject(chat("hi", body));
    expect(gateway.conversations.submissions[0]?.input.options).toEqual({
      temperature: 0.5,
      maxTokens: 9,
      stop: ["END"],
      seed: 1,
      responseFormat: { type: "json_object" },
      toolChoice: "auto",
      parallelToolCalls: false,
    });
  });

  test("the agent is chosen by model or agent_id; foreign model names mean the default", async () => {
    const gateway = await openGateway();
    for (const body of [
      { model: "gpt-4o" },
      { model: "beamclaw/coder" },
      { agent_id: "coder" },
      { model: null },
    ]) {
      await gateway.inject(chat("hi", body));
    }
    const agents = gateway.conversations.submissions.map(({ agent }) => agent);
    expect(agents).toEqual(["default", "coder", "coder", "default"]);
    const unknown = await gateway.inject(chat("hi", { model: "beamclaw/nobody" }));
    expect(unknown.statusCode).toBe(404);
    expect(unknown.json().error).toMatchObject({ code: "agent_not_found", param: "model" });
  });

  test("a token that is restricted to an agent gets no other", async () => {
    const gateway = await openGateway();
    const secret = await gateway.tokens.create({
      name: "c",
      scopes: ["chat"],
      agent: coder,
      expiresAt: null,
    });
    await gateway.inject(chat("hi", {}, bearer(secret)));
    expect(gateway.conversations.submissions[0]?.agent).toBe("coder");
    const other = await gateway.inject(chat("hi", { model: "beamclaw/default" }, bearer(secret)));
    expect(other.statusCode).toBe(403);
  });
});
