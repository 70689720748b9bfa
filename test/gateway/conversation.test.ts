import { describe, expect, test } from "vitest";
import { callTools, fail, hang, say } from "../../src/providers/scripted-provider.ts";
import { recordingTool, World, type WorldOptions } from "../support/agent-world.ts";
import { verifies } from "../support/verifies.ts";
import { bearer, chat, openGateway } from "./harness.ts";
import { chunksOf, contentOf, framesOf, SseClient } from "./sse-client.ts";

/** The gateway over real lanes, a real store and a scripted model. */
async function open(options: WorldOptions = {}) {
  const world = await World.open(options);
  const gateway = await openGateway({ world });
  return { world, gateway, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

const call = (name: string, text: string, id = `${name}-${text}`) => ({
  id,
  name,
  arguments: JSON.stringify({ text }),
});
const session = { "x-session-id": "s1" };
const tools = [{ type: "function", function: { name: "ask_client", parameters: { type: "object" } } }];

/** What the model was sent in its latest request, as role and content. */
const sent = (world: World): readonly string[] =>
  (world.provider.requests.at(-1)?.messages ?? []).map(({ wire }) => {
    const { role, content, tool_calls: calls = [] } = JSON.parse(Buffer.from(wire).toString());
    return `${role}: ${[content, ...calls.map(({ id }: { id: string }) => id)].filter(Boolean).join(" ")}`;
  });

const content = (response: { json(): { choices: { message: { content: string } }[] } }) =>
  response.json().choices[0]?.message.content;

describe("a session", () => {
  test("remembers; each request adds only what is new", async () => {
    await using house = await open();
    const { gateway, world } = house;
    world.provider.add(say("Hello ", "Bob"), say("You are Bob"));
    await gateway.inject(chat("I am Bob", {}, session));
    const history = [
      { role: "user", content: "I am Bob" },
      { role: "assistant", content: "Hello Bob" },
      { role: "user", content: "Who am I?" },
    ];
    const second = await gateway.inject(chat("", { messages: history }, session));
    expect(content(second)).toBe("You are Bob");
    expect(sent(world)).toEqual(["user: I am Bob", "assistant: Hello Bob", "user: Who am I?"]);
    const { data } = (await gateway.inject({ url: "/v1/sessions/s1/messages" })).json();
    expect(data.map(({ role }: { role: string }) => role)).toEqual([
      "user",
      "assistant",
      "user",
      "assistant",
    ]);
  });

  test("is reset, and deleted", async () => {
    await using house = await open();
    const { gateway, world } = house;
    world.provider.add(say("one"), say("two"));
    await gateway.inject(chat("first", {}, session));
    await gateway.inject({ method: "POST", url: "/v1/sessions/s1/reset" });
    await gateway.inject(chat("second", {}, session));
    expect(sent(world)).toEqual(["user: second"]);
    const { data } = (await gateway.inject({ url: "/v1/sessions/s1/messages" })).json();
    expect(data.map((message: { in_context: boolean }) => message.in_context)).toEqual([
      false,
      false,
      true,
      true,
    ]);
    expect((await gateway.inject({ method: "DELETE", url: "/v1/sessions/s1" })).json().deleted).toBe(true);
    expect((await gateway.inject({ url: "/v1/sessions/s1" })).statusCode).toBe(404);
  });

  verifies(["W4", "W23"], "streams all texts of a turn, and belongs to its token", async () => {
    const { tool } = recordingTool("look", "none");
    await using house = await open({ tools: [tool] });
    const { gateway, world } = house;
    world.provider.add({ deltas: ["Let me ", "look."], calls: [call("look", "a")] }, say("Blue."));
    const web = await gateway.token("web", ["chat"]);
    const response = await gateway.inject(chat("colour?", { stream: true }, { ...web, ...session }));
    const { chunks, done } = chunksOf(framesOf(response.body));
    expect([contentOf(chunks), done]).toEqual(["Let me look.\n\nBlue.", true]);
    const id = String(response.headers["x-session-id"]);
    expect((await gateway.inject({ url: `/v1/sessions/${id}`, headers: web })).statusCode).toBe(200);
    const other = await gateway.token("other", ["chat"]);
    expect((await gateway.inject({ url: `/v1/sessions/${id}`, headers: other })).statusCode).toBe(404);
    expect((await gateway.inject(chat("mine?", { session_id: id }, other))).statusCode).toBe(404);
  });
});

const openWithTool = async () => {
  const { tool, done } = recordingTool("act", "external");
  return { ...(await open({ tools: [tool] })), done };
};

describe("an approval", () => {
  test("is answered in the conversation; the same run goes on", async () => {
    await using house = await openWithTool();
    const { gateway, world, done } = house;
    world.provider.add(callTools(call("act", "x")), say("Done."));
    const asked = await gateway.inject(chat("do x", {}, session));
    expect(asked.headers["x-approval-id"]).toBeDefined();
    expect(content(asked)).toContain("/yes");
    expect(done).toEqual([]);
    const answered = await gateway.inject(chat("/yes", { stream: true }, session));
    expect(answered.headers["x-run-id"]).toBe(asked.headers["x-run-id"]);
    expect(contentOf(chunksOf(framesOf(answered.body)).chunks)).toBe("Done.");
    expect(done).toEqual(["x"]);
  });

  test("is answered over its route, once; the run's reader hears it all", async () => {
    await using house = await openWithTool();
    const { gateway, world, done } = house;
    world.provider.add(callTools(call("act", "x")), say("Done."));
    const asked = await gateway.inject(chat("do x", {}, session));
    const url = await gateway.listen();
    const run = String(asked.headers["x-run-id"]);
    const events = new SseClient(
      await fetch(`${url}/v1/runs/${run}/events`, { headers: bearer(gateway.owner) }),
    );
    const approval = `/v1/approvals/${String(asked.headers["x-approval-id"])}`;
    const decide = () => gateway.inject({ method: "POST", url: approval, payload: { decision: "approve" } });
    expect((await decide()).json()).toMatchObject({ state: "approved", decided_by: "api:anonymous" });
    expect((await decide()).statusCode).toBe(409);
    const types = (await events.all()).map((frame) => /^event: (.*)$/m.exec(frame)?.[1]);
    expect(types.filter((type) => type !== undefined && type !== "chunk" && type !== "run.snapshot")).toEqual(
      [
        "run.started",
        "message.added",
        "tool.requested",
        "approval.requested",
        "run.waiting",
        "approval.resolved",
        "run.resumed",
        "tool.started",
        "tool.finished",
        "message.added",
        "message.added",
        "message.added",
        "run.completed",
      ],
    );
    expect(done).toEqual(["x"]);
    expect((await gateway.inject({ url: `/v1/runs/${run}` })).json()).toMatchObject({
      state: "completed",
      output: "Done.",
    });
  });

  test("is withdrawn by any other message", async () => {
    await using house = await openWithTool();
    const { gateway, world, done } = house;
    world.provider.add(callTools(call("act", "x")), say("As you like."));
    const asked = await gateway.inject(chat("do x", {}, session));
    expect(content(await gateway.inject(chat("never mind", {}, session)))).toBe("As you like.");
    const approval = `/v1/approvals/${String(asked.headers["x-approval-id"])}`;
    expect((await gateway.inject({ url: approval })).json().state).toBe("withdrawn");
    expect(done).toEqual([]);
  });
});

const openWithLook = async () => {
  const { tool, done } = recordingTool("look", "none");
  return { ...(await open({ tools: [tool] })), done };
};

describe("the client's tools", () => {
  const both = callTools(call("look", "here"), { id: "c1", name: "ask_client", arguments: "{}" });

  test("beside the server's, in a session: only theirs come out, both results go in", async () => {
    await using house = await openWithLook();
    const { gateway, world, done } = house;
    world.provider.add(both, say("Thanks."));
    const asked = await gateway.inject(chat("go", { tools }, session));
    const [choice] = asked.json().choices;
    expect(choice.finish_reason).toBe("tool_calls");
    expect(choice.message.tool_calls.map(({ id }: { id: string }) => id)).toEqual(["c1"]);
    expect(done).toEqual(["here"]);
    const messages = [
      { role: "user", content: "go" },
      choice.message,
      { role: "tool", tool_call_id: "c1", content: "42" },
    ];
    expect(content(await gateway.inject(chat("", { messages, tools }, session)))).toBe("Thanks.");
    expect(sent(world)).toEqual(["user: go", "assistant: look-here c1", "tool: did here", "tool: 42"]);
  });

  test("left unanswered in a session are marked so", async () => {
    await using house = await openWithLook();
    const { gateway, world } = house;
    world.provider.add(both, say("Fine."));
    await gateway.inject(chat("go", { tools }, session));
    await gateway.inject(chat("forget it", { tools }, session));
    expect(sent(world)).toEqual([
      "user: go",
      "assistant: look-here c1",
      "tool: did here",
      expect.stringContaining("not answered"),
      "user: forget it",
    ]);
    const orphan = { role: "tool", tool_call_id: "c1", content: "late" };
    const late = await gateway.inject(chat("", { messages: [orphan], tools }, session));
    expect([late.statusCode, late.json().error.param]).toEqual([400, "messages[0].tool_call_id"]);
  });

  test("without a session: the call ids lead back to what the server's tools did", async () => {
    await using house = await openWithLook();
    const { gateway, world } = house;
    world.provider.add(callTools(call("look", "first")), both, say("Thanks."));
    const asked = await gateway.inject(chat("go", { tools }));
    const [choice] = asked.json().choices;
    const messages = [
      { role: "user", content: "go" },
      choice.message,
      { role: "tool", tool_call_id: "c1", content: "42" },
    ];
    expect(content(await gateway.inject(chat("", { messages, tools })))).toBe("Thanks.");
    expect(sent(world)).toEqual([
      "user: go",
      "assistant: look-first",
      "tool: did first",
      "assistant: look-here c1",
      "tool: did here",
      "tool: 42",
    ]);
    const eve = await gateway.token("eve", ["chat"]);
    world.provider.add(say("Hm."));
    await gateway.inject(chat("", { messages, tools }, eve));
    expect(sent(world)).toEqual(["user: go", "assistant: c1", "tool: 42"]);
  });
});

describe("trouble", () => {
  test("before the first word is a status, with the model's Retry-After", async () => {
    await using house = await open();
    const { gateway, world } = house;
    for (const stream of [false, true]) {
      world.provider.add(fail("provider_rate_limited", { retryable: false, retryAfterSeconds: 7 }));
      const response = await gateway.inject(chat("hi", { stream }));
      expect([response.statusCode, response.headers["retry-after"]]).toEqual([503, "7"]);
    }
  });

  test("a client that leaves cancels its stateless run, at the model too", async () => {
    await using house = await open();
    const { gateway, world } = house;
    world.provider.add(hang("Thinking about it. "));
    const response = await fetch(`${await gateway.listen()}/v1/chat/completions`, {
      method: "POST",
      headers: bearer(gateway.owner),
      body: JSON.stringify(chat("hi", { stream: true }).payload),
    });
    const client = new SseClient(response);
    await client.next();
    await client.close();
    await gateway.obs.ended(1);
    const url = `/v1/runs/${response.headers.get("x-run-id")}`;
    expect((await gateway.inject({ url })).json()).toMatchObject({
      state: "cancelled",
      output: expect.stringContaining("Thinking about"),
    });
  });

  test("a cancelled run ends its stream", async () => {
    await using house = await open();
    const { gateway, world } = house;
    world.provider.add(hang("Thinking about it. "));
    const response = await fetch(`${await gateway.listen()}/v1/chat/completions`, {
      method: "POST",
      headers: { ...bearer(gateway.owner), ...session },
      body: JSON.stringify(chat("hi", { stream: true }).payload),
    });
    const client = new SseClient(response);
    await client.next();
    const run = response.headers.get("x-run-id");
    const cancelled = await gateway.inject({ method: "POST", url: `/v1/runs/${run}/cancel` });
    expect(cancelled.json().state).toBe("cancelled");
    expect(contentOf(chunksOf(await client.all()).chunks)).toMatch(/\[cancelled\]$/);
  });

  test("a repeated request with a key costs the model nothing", async () => {
    await using house = await open();
    const { gateway, world } = house;
    world.provider.add(say("Once."));
    const key = { "idempotency-key": "k", ...session };
    const first = await gateway.inject(chat("hi", {}, key));
    expect((await gateway.inject(chat("hi", {}, key))).json()).toEqual(first.json());
    expect(world.provider.requests).toHaveLength(1);
    expect((await gateway.inject(chat("ho", {}, key))).statusCode).toBe(409);
  });

  test("a cursor that nobody gave out is no defect", async () => {
    await using house = await open();
    const { gateway } = house;
    for (const url of ["/v1/runs", "/v1/sessions", "/v1/approvals"]) {
      for (const cursor of ["x", "-1", "99999999999999999999", "YTpi", "a:b"]) {
        const { statusCode } = await gateway.inject({ url: `${url}?cursor=${cursor}` });
        expect(statusCode).toBeLessThan(500);
      }
    }
    expect(gateway.obs.defects).toEqual([]);
  });
});
