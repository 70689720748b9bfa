import { describe, expect, test } from "vitest";
import { newId, type RunId } from "../../src/domain/ids.ts";
import { callTools, fail, hang, say } from "../../src/providers/scripted-provider.ts";
import {
  agent,
  alice,
  endingOf,
  spoken,
  recordingTool,
  said,
  session,
  World,
} from "../support/agent-world.ts";
import { verifies } from "../support/verifies.ts";

const call = (name: string, text: string, id = `${name}-${text}`) => ({
  id,
  name,
  arguments: JSON.stringify({ text }),
});

describe("a plain turn", () => {
  test("streams, ends once, and is in the history", async () => {
    await using world = await World.open();
    world.provider.add(say("Hel", "lo"));
    const submitted = await world.submit("hi");
    if (submitted.kind !== "accepted") throw new Error(submitted.kind);
    const ending = await endingOf(submitted.live);
    expect(said(submitted.live)).toBe("Hello");
    expect(ending).toMatchObject({
      kind: "ended",
      run: { state: "completed", finishReason: "stop", output: "Hello" },
    });
    expect(await world.history()).toEqual(["user: hi", "assistant: Hello"]);
  });

  verifies("W7", "the next turn sends the whole conversation, paired", async () => {
    const { tool } = recordingTool("look", "none");
    await using world = await World.open({ tools: [tool] });
    world.provider.add(callTools(call("look", "a"), call("look", "b")), say("seen"), say("yes"));
    await world.say("look twice");
    await world.say("sure?");
    const sent = world.provider.requests[2]?.messages.map(({ wire }) => JSON.parse(wire));
    expect(sent?.map((message) => message.role)).toEqual([
      "user",
      "assistant",
      "tool",
      "tool",
      "assistant",
      "user",
    ]);
    expect(sent?.[1].tool_calls.map((c: { id: string }) => c.id)).toEqual(["look-a", "look-b"]);
    expect(sent?.[2]).toMatchObject({ tool_call_id: "look-a", content: "did a" });
    expect(sent?.[3]).toMatchObject({ tool_call_id: "look-b", content: "did b" });
  });

  verifies("W4", "with tools it ends at the final answer, not at the first text", async () => {
    const { tool } = recordingTool("look", "none");
    await using world = await World.open({ tools: [tool] });
    world.provider.add({ deltas: ["Let me look."], calls: [call("look", "a")] }, say("It is blue."));
    const submitted = await world.submit("colour?");
    if (submitted.kind !== "accepted") throw new Error(submitted.kind);
    const ending = await endingOf(submitted.live);
    expect(ending.run.output).toBe("It is blue.");
    expect(said(submitted.live)).toBe("Let me look.|It is blue.");
  });

  test("usage adds up over the steps of a run", async () => {
    const { tool } = recordingTool("look", "none");
    await using world = await World.open({ tools: [tool] });
    const usage = { promptTokens: 10, completionTokens: 2 };
    world.provider.add({ calls: [call("look", "a")], usage }, { deltas: ["done"], usage });
    expect((await world.say("look")).run.usage).toEqual({ promptTokens: 20, completionTokens: 4 });
  });

  test("an empty answer is not silence", async () => {
    await using world = await World.open();
    world.provider.add(say());
    expect((await world.say("hi")).run.output).toContain("empty answer");
  });

  verifies(
    ["W63"],
    "a failed model ends the turn with a classified error and keeps what was said",
    async () => {
      await using world = await World.open();
      world.provider.add(fail("provider_interrupted", { deltas: ["half an "] }), say("fine"));
      const ending = await world.say("hi");
      expect(ending.run).toMatchObject({
        state: "failed",
        error: { code: "provider_interrupted" },
        output: "half an ",
      });
      expect((await world.say("again")).run.state).toBe("completed");
      expect(await world.history()).toEqual([
        "user: hi",
        "assistant: half an ",
        "user: again",
        "assistant: fine",
      ]);
    },
  );
});

describe("a session", () => {
  test("runs its messages one at a time, in order", async () => {
    await using world = await World.open();
    world.provider.add(say("one"), say("two"), say("three"));
    const endings = await Promise.all(["1", "2", "3"].map((text) => world.say(text)));
    expect(endings.map(({ run }) => run.output)).toEqual(["one", "two", "three"]);
    expect(await world.history()).toEqual([
      "user: 1",
      "assistant: one",
      "user: 2",
      "assistant: two",
      "user: 3",
      "assistant: three",
    ]);
  });

  verifies("W13", "two first messages at once share one lane", async () => {
    await using world = await World.open();
    world.provider.add(hang("a"), say("b"));
    const [first, second] = await Promise.all([world.submit("1"), world.submit("2")]);
    expect([first.kind, second.kind]).toEqual(["accepted", "accepted"]);
    const states = (await world.store.runs.list({ sessionId: session, page: { cursor: null, limit: 10 } }))
      .data;
    expect(states.map(({ state }) => state).toSorted()).toEqual(["queued", "running"]);
  });

  test("refuses more than its queue holds", async () => {
    await using world = await World.open({ perSession: 1 });
    world.provider.add(hang());
    await world.submit("1");
    await world.submit("2");
    expect(await world.submit("3")).toMatchObject({ kind: "refused", code: "queue_full" });
  });

  test("waits for a slot when all are taken, and every one of many gets its turn", async () => {
    await using world = await World.open({ concurrentRuns: 1 });
    world.provider.add(...Array.from({ length: 5 }, (_, i) => say(`${i}`)));
    const endings = await Promise.all(
      Array.from({ length: 5 }, (_, i) => world.say(`${i}`, { sessionId: `session-${i}` as typeof session })),
    );
    expect(endings.map(({ run }) => run.state)).toEqual(Array.from({ length: 5 }, () => "completed"));
  });

  test("cancel ends the run within its turn and lets the next one start", async () => {
    await using world = await World.open();
    world.provider.add(hang("thinking "), say("next"));
    const submitted = await world.submit("1");
    const next = world.say("2");
    if (submitted.kind !== "accepted") throw new Error(submitted.kind);
    await spoken(submitted.live);
    expect(await world.sessions.cancel(submitted.run.id, "user")).toBe("cancelled");
    expect((await endingOf(submitted.live)).run.state).toBe("cancelled");
    expect((await next).run.output).toBe("next");
    expect(await world.sessions.cancel(submitted.run.id, "user")).toBe("run_ended");
    expect(await world.sessions.cancel(newId<RunId>(0), "user")).toBe("not_found");
  });

  test("cancelling a queued run takes it out of the lane", async () => {
    await using world = await World.open();
    world.provider.add(hang());
    await world.submit("1");
    const queued = await world.submit("2");
    if (queued.kind !== "accepted") throw new Error(queued.kind);
    expect(await world.sessions.cancel(queued.run.id, "user")).toBe("cancelled");
    expect((await endingOf(queued.live)).run.state).toBe("cancelled");
  });

  test("a turn that takes too long fails as such", async () => {
    await using world = await World.open();
    world.provider.add(hang("slow ", "answer"));
    const ending = world.say("1");
    await world.clock.advance(600_000);
    expect((await ending).run).toMatchObject({
      state: "failed",
      error: { code: "turn_timeout" },
      output: "slow ",
    });
  });

  verifies("W5", "cancelling stops the model's stream at once", async () => {
    await using world = await World.open();
    world.provider.add(hang("never "));
    const submitted = await world.submit("1");
    if (submitted.kind !== "accepted") throw new Error(submitted.kind);
    await spoken(submitted.live);
    expect(await world.sessions.cancel(submitted.run.id, "user")).toBe("cancelled");
    expect(await endingOf(submitted.live)).toMatchObject({
      kind: "ended",
      run: { state: "cancelled", output: "never " },
    });
  });
});

async function touching() {
  const touched = recordingTool("touch", "external");
  const world = await World.open({ tools: [touched.tool] });
  world.provider.add(callTools(call("touch", "x")));
  return { world, done: touched.done };
}

describe("approval", () => {
  verifies("W2", "nothing runs before /yes, and the same run goes on after it", async () => {
    const { world, done } = await touching();
    await using _ = world;
    const waiting = await world.say("touch x");
    expect(waiting).toMatchObject({ kind: "waiting", approval: { tool: "touch", pattern: "touch x" } });
    expect((await world.run(waiting)).state).toBe("waiting");
    expect(done).toEqual([]);
    world.provider.add(say("touched"));
    const ended = await world.say("/yes");
    expect(ended.run).toMatchObject({ id: waiting.run.id, state: "completed", output: "touched" });
    expect(done).toEqual(["x"]);
    expect(await world.history()).toEqual([
      "user: touch x",
      "assistant: null →touch",
      "tool: did x",
      "assistant: touched",
    ]);
  });

  test("/no is a result for the model", async () => {
    const { world, done } = await touching();
    await using _ = world;
    await world.say("touch x");
    world.provider.add(say("as you wish"));
    expect((await world.say("/no")).run.output).toBe("as you wish");
    expect(done).toEqual([]);
    expect((await world.history())[2]).toContain("Denied");
  });

  test("/always allows the pattern for the session, and only that pattern", async () => {
    const { world, done } = await touching();
    await using _ = world;
    await world.say("touch x");
    world.provider.add(
      say("ok"),
      callTools(call("touch", "x", "again")),
      say("done"),
      callTools(call("touch", "y")),
    );
    await world.say("/always");
    expect((await world.say("touch x again")).run.output).toBe("done");
    expect(done).toEqual(["x", "x"]);
    expect((await world.say("touch y")).kind).toBe("waiting");
  });

  test("any other message withdraws the question and runs next", async () => {
    const { world, done } = await touching();
    await using _ = world;
    const waiting = await world.say("touch x");
    world.provider.add(say("something else"));
    expect((await world.say("never mind")).run.output).toBe("something else");
    expect((await world.run(waiting)).state).toBe("cancelled");
    expect(done).toEqual([]);
    expect((await world.history()).map((line) => line.split(":")[0])).toEqual([
      "user",
      "assistant",
      "tool",
      "user",
      "assistant",
    ]);
  });

  test("an unanswered question is denied when its time is up", async () => {
    const { world, done } = await touching();
    await using _ = world;
    const waiting = await world.say("touch x");
    if (waiting.kind !== "waiting") throw new Error(waiting.kind);
    world.provider.add(say("too late"));
    await world.sessions.expire(waiting.approval);
    const live = world.sessions.live(waiting.run.id);
    if (live === undefined) throw new Error("the run did not go on");
    expect((await endingOf(live)).run.output).toBe("too late");
    expect(done).toEqual([]);
    expect(await world.sessions.decide(waiting.approval.id, "approve", alice)).toMatchObject({
      code: "approval_decided",
    });
  });

  test("from somebody who may not decide, /yes is an ordinary message", async () => {
    const { world, done } = await touching();
    await using _ = world;
    await world.say("touch x");
    world.provider.add(say("what?"));
    expect((await world.say("/yes", { mayDecide: false })).run.output).toBe("what?");
    expect(done).toEqual([]);
  });

  test("several calls are asked one at a time, in call order", async () => {
    const touched = recordingTool("touch", "external");
    await using world = await World.open({ tools: [touched.tool] });
    world.provider.add(callTools(call("touch", "a"), call("touch", "b")));
    await world.say("touch both");
    const second = await world.say("/yes");
    expect(second).toMatchObject({ kind: "waiting" });
    world.provider.add(say("both"));
    expect((await world.say("/yes")).run.output).toBe("both");
    expect(touched.done).toEqual(["a", "b"]);
  });

  verifies("W3", "read_only neither offers nor runs a tool with effects; full does not ask", async () => {
    const touched = recordingTool("touch", "external");
    await using readOnly = await World.open({ tools: [touched.tool], autonomy: "read_only" });
    readOnly.provider.add(callTools(call("touch", "x")), say("could not"));
    await readOnly.say("touch x");
    expect(readOnly.provider.requests[0]?.tools).toEqual([]);
    expect(touched.done).toEqual([]);
    await using full = await World.open({ tools: [touched.tool], autonomy: "full" });
    full.provider.add(callTools(call("touch", "x")), say("done"));
    expect((await full.say("touch x")).run.output).toBe("done");
    expect(touched.done).toEqual(["x"]);
  });
});

test("what nobody could approve is not offered", async () => {
  const touched = recordingTool("touch", "external");
  const origin = { channel: "http", token: "t", interactive: false, effects: true };
  for (const [autonomy, offered] of [
    ["supervised", []],
    ["full", ["touch"]],
  ] as const) {
    await using world = await World.open({ tools: [touched.tool], autonomy });
    world.provider.add(say("ok"));
    await world.say("hi", { sessionId: null, input: { origin } });
    expect(world.provider.requests[0]?.tools.map(({ name }) => name)).toEqual(offered);
  }
});

describe("tools", () => {
  test("client tools end the turn; server calls of the same step run first", async () => {
    const looked = recordingTool("look", "none");
    await using world = await World.open({ tools: [looked.tool] });
    const clientTools = [{ name: "theirs", description: "", parameters: {} }];
    world.provider.add(callTools(call("theirs", "c"), call("look", "s")));
    const ending = await world.say("go", { input: { clientTools } });
    expect(ending.run).toMatchObject({ state: "completed", finishReason: "tool_calls" });
    expect(ending.run.clientCalls.map(({ name }) => name)).toEqual(["theirs"]);
    expect(looked.done).toEqual(["s"]);
    expect(await world.store.sessions.openClientCalls(session)).toEqual(["theirs-c"]);
  });

  verifies("W8", "the iteration limit ends in an answer", async () => {
    const looked = recordingTool("look", "none");
    await using world = await World.open({ tools: [looked.tool], maxToolIterations: 1 });
    world.provider.add(callTools(call("look", "a")), callTools(call("look", "b", "b")), say("that is all"));
    const ending = await world.say("go");
    expect(ending.run.output).toBe("that is all");
    expect(looked.done).toEqual(["a"]);
    expect(world.provider.requests[2]?.tools).toEqual([]);
  });

  verifies(
    "W20",
    "secrets in arguments, results and answers are redacted wherever they are kept or shown",
    async () => {
      const secret = `ghp_${"a1B2".repeat(9)}`;
      const leaking = recordingTool("leak", "none", () => ({ ok: true, text: `token is ${secret}` }));
      await using world = await World.open({ tools: [leaking.tool] });
      world.provider.add(
        callTools(call("leak", secret, "c1")),
        say(`I found ${secret.slice(0, 10)}`, `${secret.slice(10)} there`),
      );
      const submitted = await world.submit("go");
      if (submitted.kind !== "accepted") throw new Error(submitted.kind);
      const ending = await endingOf(submitted.live);
      expect(leaking.done).toEqual([secret]);
      const kept = JSON.stringify([await world.history(), ending, said(submitted.live), world.obs.records]);
      expect(kept).not.toContain(secret);
      expect(kept).toContain("[REDACTED]");
    },
  );

  verifies("W19", "a path in a tool's text is only text", async () => {
    const media = recordingTool("fetch", "none", () => ({ ok: true, text: "MEDIA: /etc/passwd" }));
    await using world = await World.open({ tools: [media.tool] });
    world.provider.add(callTools(call("fetch", "x")), say("done"));
    const ending = await world.say("go");
    expect(ending.run.output).toBe("done");
    expect((await world.history())[2]).toBe("tool: MEDIA: /etc/passwd");
  });

  test("a tool that throws, an unknown tool and bad arguments are results for the model", async () => {
    const broken = recordingTool("broken", "none", () => {
      throw new Error("boom");
    });
    await using world = await World.open({ tools: [broken.tool] });
    world.provider.add(
      callTools(call("broken", "x"), call("nobody", "y"), { id: "z", name: "broken", arguments: "{" }),
      say("three failures"),
    );
    expect((await world.say("go")).run.output).toBe("three failures");
    const results = (await world.history()).filter((line) => line.startsWith("tool"));
    expect(results).toEqual([
      expect.stringContaining("boom"),
      expect.stringContaining("no tool named nobody"),
      expect.stringContaining("JSON"),
    ]);
  });
});

describe("after a crash of the process", () => {
  test("an interrupted model call is made again, and the run ends once", async () => {
    await using world = await World.open();
    world.provider.add(hang("half"));
    await world.submit("1");
    await world.submit("2");
    await world.crash();
    await using again = await World.open({ store: world.store });
    again.provider.add(say("whole"), say("second"));
    await again.sessions.recover();
    const last = await again.say("3", { sessionId: session }).catch(() => null);
    expect(last?.run.state).toBe("failed"); // the script is over: but only after the two that were open
    expect((await again.history()).slice(0, 4)).toEqual([
      "user: 1",
      "assistant: whole",
      "user: 2",
      "assistant: second",
    ]);
  });

  test("a call with effects that had started is not run again; the model is told", async () => {
    const { promise: started, resolve } = Promise.withResolvers<void>();
    const touched = recordingTool("touch", "external", async (_, signal) => {
      resolve();
      await new Promise((_resolve, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason), { once: true }),
      );
      return { ok: true, text: "never" };
    });
    await using world = await World.open({ tools: [touched.tool], autonomy: "full" });
    world.provider.add(callTools(call("touch", "x")));
    await world.submit("go");
    await started;
    await world.crash();
    await using again = await World.open({ store: world.store, tools: [touched.tool], autonomy: "full" });
    again.provider.add(say("I was interrupted"));
    await again.sessions.recover();
    const [run] = (await again.store.runs.list({ sessionId: session, page: { cursor: null, limit: 1 } }))
      .data;
    const live = run === undefined ? undefined : again.sessions.live(run.id);
    if (live === undefined) throw new Error("the run was not taken up again");
    expect((await endingOf(live)).run.output).toBe("I was interrupted");
    expect(touched.done).toEqual(["x"]);
    expect((await again.history())[2]).toContain("may or may not have taken effect");
  });

  test("a question survives and can still be answered", async () => {
    const touched = recordingTool("touch", "external");
    await using world = await World.open({ tools: [touched.tool] });
    world.provider.add(callTools(call("touch", "x")));
    await world.say("touch x");
    await world.crash();
    await using again = await World.open({ store: world.store, tools: [touched.tool] });
    await again.sessions.recover();
    again.provider.add(say("touched"));
    expect((await again.say("/yes")).run.output).toBe("touched");
    expect(touched.done).toEqual(["x"]);
  });

  test("a stateless run without a key ends as interrupted", async () => {
    await using world = await World.open();
    world.provider.add(hang());
    const submitted = await world.submit("1", { sessionId: null });
    if (submitted.kind !== "accepted") throw new Error(submitted.kind);
    await world.crash();
    await using again = await World.open({ store: world.store });
    await again.sessions.recover();
    expect(await again.store.runs.get(submitted.run.id)).toMatchObject({
      state: "failed",
      error: { code: "interrupted" },
    });
  });
});

describe("idempotency", () => {
  const key = { token: "owner", route: "chat", key: "k", bodyHash: "h" };

  test("the same key and body is the same run; another body is refused", async () => {
    await using world = await World.open();
    world.provider.add(say("once"));
    const first = await world.submit("1", { idempotency: key });
    if (first.kind !== "accepted") throw new Error(first.kind);
    const attached = await world.submit("1", { idempotency: key });
    expect(attached).toMatchObject({ kind: "replayed", run: { id: first.run.id } });
    await endingOf(first.live);
    expect(await world.submit("1", { idempotency: key })).toMatchObject({
      kind: "replayed",
      run: { output: "once" },
    });
    expect(await world.submit("2", { idempotency: { ...key, bodyHash: "x" } })).toMatchObject({
      kind: "refused",
      code: "idempotency_conflict",
    });
    expect(await world.history()).toEqual(["user: 1", "assistant: once"]);
  });
});

test("a reset starts the visible history afresh, but not under a run", async () => {
  await using world = await World.open();
  world.provider.add(say("one"), hang("thinking "));
  await world.say("1");
  expect(await world.sessions.reset(session)).toBe("reset");
  const submitted = await world.submit("2");
  if (submitted.kind !== "accepted") throw new Error(submitted.kind);
  await spoken(submitted.live);
  expect(await world.sessions.reset(session)).toBe("session_busy");
  expect(world.provider.requests[1]?.messages).toHaveLength(1);
});

test("a conversation beyond the window is shortened at a message of the user", async () => {
  await using world = await World.open({ contextWindow: 900 });
  const long = "word ".repeat(300);
  world.provider.add(say(long), say(long), say("short"));
  for (const text of ["1", "2", "3"]) await world.say(text);
  const last = world.provider.requests.at(-1)?.messages ?? [];
  expect(JSON.parse(last[0]?.wire ?? "{}").role).toBe("user");
  expect(last.length).toBeLessThan(5);
  expect(await world.history()).toHaveLength(6);
  expect(agent).toBe("default");
});
