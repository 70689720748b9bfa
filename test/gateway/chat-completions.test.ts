import { describe, expect, test } from "vitest";
import { verifies } from "../support/verifies.ts";
import { chat, openGateway } from "./harness.ts";

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
});
