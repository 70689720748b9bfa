import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { asId, type MessageId, type Principal, type RunId } from "../../src/domain/ids.ts";
import type { WireMessage } from "../../src/domain/message.ts";
import { NOT_ANSWERED, statefulMessages, statelessMessages } from "../../src/gateway/chat-input.ts";
import type { StoredCall, StoredStep } from "../../src/store/ports.ts";
import { MemoryStore } from "./memory-store.ts";

const user = (content: string): WireMessage => ({ role: "user", content });
const system = (content: string): WireMessage => ({ role: "system", content });
const tool = (id: string, content = "result"): WireMessage => ({ role: "tool", tool_call_id: id, content });
const asks = (...ids: readonly string[]): WireMessage => ({
  role: "assistant",
  content: null,
  tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "f", arguments: "{}" } })),
});
const says = (content: string): WireMessage => ({ role: "assistant", content });

const principal = asId<Principal>("api:web/bob");
const lookup = (store = new MemoryStore()) => ({ steps: store.steps, principal, at: 0 });

describe("stateful", () => {
  test("only what follows the last assistant message is new; system messages apply to the run", () => {
    const messages = [system("be kind"), user("1"), says("one"), user("2"), system("briefly"), user("3")];
    expect(statefulMessages(messages, [])).toEqual({
      messages: [user("2"), user("3")],
      system: ["be kind", "briefly"],
    });
  });

  test("results come first, in the order of the calls", () => {
    const { messages } = statefulMessages([asks("a", "b"), user("and?"), tool("b"), tool("a")], ["a", "b"]);
    expect(messages).toEqual([tool("a"), tool("b"), user("and?")]);
  });

  test("calls that stay open get a result that says so", () => {
    expect(statefulMessages([user("never mind")], ["a"]).messages).toEqual([
      tool("a", NOT_ANSWERED),
      user("never mind"),
    ]);
    expect(statefulMessages([tool("b")], ["a", "b"]).messages).toEqual([tool("a", NOT_ANSWERED), tool("b")]);
  });

  test.each([
    ["an orphan result", [tool("x")], ["a"], "messages[0].tool_call_id"],
    ["a result that came before", [user("q"), asks("a"), tool("a")], [], "messages[2].tool_call_id"],
    ["two results for one call", [tool("a"), tool("a")], ["a"], "messages[1].tool_call_id"],
    ["nothing new", [user("q"), says("r")], [], "messages"],
    ["system messages alone", [system("s")], [], "messages"],
  ] as const)("%s is refused, naming the field", (_, messages, open, param) => {
    expect(() => statefulMessages(messages, open)).toThrow(expect.objectContaining({ param }));
  });
});

describe("stateless", () => {
  test("the request is the conversation; leading system messages stand apart", async () => {
    const rest = [user("1"), says("one"), system("now in French"), user("2")];
    expect(await statelessMessages([system("a"), system("b"), ...rest], lookup())).toEqual({
      messages: rest,
      system: ["a", "b"],
    });
  });

  test("a call without a result gets one", async () => {
    const { messages } = await statelessMessages(
      [user("q"), asks("a", "b"), tool("b"), user("go on")],
      lookup(),
    );
    expect(messages).toEqual([user("q"), asks("a", "b"), tool("a", NOT_ANSWERED), tool("b"), user("go on")]);
  });

  test.each([
    ["a result without a call", [user("q"), tool("a")], "messages[1].tool_call_id"],
    ["a result too late", [asks("a"), user("q"), tool("a")], "messages[2].tool_call_id"],
    ["a result twice", [asks("a"), tool("a"), tool("a")], "messages[2].tool_call_id"],
    ["one id for two calls", [asks("a", "a")], "messages[0].tool_calls"],
    ["no conversation", [system("s")], "messages"],
  ] as const)("%s is refused, naming the field", async (_, messages, param) => {
    await expect(statelessMessages(messages, lookup())).rejects.toThrow(expect.objectContaining({ param }));
  });

  test("our own call ids restore what the server's tools did, in order", async () => {
    const store = new MemoryStore();
    const runId = asId<RunId>("run");
    store.savedSteps.push(
      { runId, principal, step: step(0, asks("s1"), [call(0, "s1", "found it")]) },
      {
        runId,
        principal,
        step: step(1, asks("s2", "c1", "s3"), [
          call(0, "s2", "second"),
          call(1, "c1"),
          call(2, "s3", "third"),
        ]),
      },
    );
    const sent = [user("q"), asks("c1"), tool("c1", "from the client")];
    const { messages } = await statelessMessages(sent, lookup(store));
    expect(messages).toEqual([
      user("q"),
      asks("s1"),
      tool("s1", "found it"),
      asks("s2", "c1", "s3"),
      tool("s2", "second"),
      tool("c1", "from the client"),
      tool("s3", "third"),
    ]);
  });

  test("another person's call ids restore nothing", async () => {
    const store = new MemoryStore();
    const steps = step(0, asks("c1", "s1"), [call(0, "c1"), call(1, "s1", "private")]);
    store.savedSteps.push({ runId: asId<RunId>("run"), principal: "api:web/eve", step: steps });
    const { messages } = await statelessMessages([asks("c1"), tool("c1")], lookup(store));
    expect(JSON.stringify(messages)).not.toContain("private");
  });

  test("any conversation that is accepted is paired", async () => {
    const ids = fc.constantFrom("a", "b", "c");
    const message = fc.oneof(
      fc.constant(user("u")),
      fc.constant(says("s")),
      fc.uniqueArray(ids, { minLength: 1 }).map((chosen) => asks(...chosen)),
      ids.map((id) => tool(id)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 8 }), async (sent) => {
        const result = await statelessMessages(sent, lookup()).catch(() => null);
        if (result !== null) expectPaired(result.messages);
      }),
    );
  });
});

test("any stateful tail that is accepted answers all open calls first", () => {
  const ids = ["a", "b", "c"];
  const message = fc.oneof(
    fc.constant(user("u")),
    fc.constantFrom(...ids).map((id) => tool(id)),
  );
  fc.assert(
    fc.property(fc.array(message), fc.subarray(ids), (sent, open) => {
      let result;
      try {
        result = statefulMessages(sent, open);
      } catch {
        return;
      }
      expectPaired([...(open.length > 0 ? [asks(...open)] : []), ...result.messages]);
    }),
  );
});

function expectPaired(messages: readonly WireMessage[]): void {
  let open: string[] = [];
  for (const message of messages) {
    if (message.role === "tool") expect(open.shift()).toBe(message.tool_call_id);
    else expect(open).toEqual([]);
    if (message.role === "assistant") open = (message.tool_calls ?? []).map(({ id }) => id);
  }
  expect(open).toEqual([]);
}

function step(index: number, wire: WireMessage, calls: readonly StoredCall[]): StoredStep {
  return { step: index, wire: JSON.stringify(wire), extra: null, messageId: asId<MessageId>("m"), calls };
}

function call(index: number, callId: string, text: string | null = null): StoredCall {
  return {
    index,
    callId,
    tool: "f",
    effect: "none",
    client: text === null,
    arguments: "{}",
    state: text === null ? "pending" : "settled",
    approved: false,
    result: text === null ? null : { ok: true, text },
  };
}
