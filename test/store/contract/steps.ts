import { describe, expect, test } from "vitest";
import { asId, type Principal } from "../../../src/domain/ids.ts";
import { notAnswered } from "../../../src/store/sqlite/history.ts";
import {
  accepted,
  alice,
  call,
  eventTypesOf,
  finishRequest,
  historyOf,
  keyOf,
  outline,
  session,
  start,
  stepOf,
  toolAnswer,
  user,
} from "../requests.ts";
import type { Open } from "./open.ts";

const done = { ok: true, text: "done" };
const awaiting = { finishReason: "tool_calls", message: null, output: null } as const;

export function stepContract(open: Open): void {
  describe("steps", () => {
    test("an answer and its results join the history together, in call order", async () => {
      const store = await open();
      const run = await accepted(store);
      const calls = [call("a"), call("b"), call("c", { result: { ok: false, text: "no such tool" } })];
      expect(await store.steps.record(stepOf(run, calls))).toEqual({ kind: "recorded", settled: false });
      expect(await store.steps.settle({ ...keyOf(run, 1), result: done, at: start })).toEqual({
        kind: "settled",
        settled: false,
      });
      expect(outline(await historyOf(store))).toEqual(["user"]);
      expect(await store.steps.settle({ ...keyOf(run, 0), result: done, at: start })).toEqual({
        kind: "settled",
        settled: true,
      });
      const history = await historyOf(store);
      expect(outline(history)).toEqual(["user", "assistant(a,b,c)", "tool:a", "tool:b", "tool:c"]);
      expect(history.at(-1)?.content).toBe("no such tool");
      const transcript = await store.sessions.transcript(run);
      expect(transcript.map(({ wire }) => JSON.parse(Buffer.from(wire).toString()))).toEqual(history);
    });

    test("steps and calls read back the same before and after they have joined", async () => {
      const store = await open();
      const run = await accepted(store);
      const step = stepOf(run, [call("a"), call("b", { effect: "none", started: true })], {
        extra: '{"x":1}',
      });
      await store.steps.record(step);
      const shown = { step: 0, wire: step.wire, extra: '{"x":1}', messageId: step.messageId };
      expect(await store.steps.list(run.id)).toMatchObject([
        {
          ...shown,
          calls: [
            { index: 0, state: "pending", approved: false },
            { index: 1, state: "started" },
          ],
        },
      ]);
      await store.steps.settle({ ...keyOf(run, 0), result: { ok: false, text: "é\u{1f600}\n" }, at: start });
      await store.steps.settle({ ...keyOf(run, 1), result: { ok: true, text: "" }, at: start });
      expect(await store.steps.list(run.id)).toMatchObject([
        {
          ...shown,
          calls: [
            { callId: "a", state: "settled", result: { ok: false, text: "é\u{1f600}\n" } },
            { callId: "b", state: "settled", result: { ok: true, text: "" } },
          ],
        },
      ]);
    });

    test("raw arguments are readable until the call settles, then only the scrubbed ones", async () => {
      const store = await open();
      const run = await accepted(store);
      const secret = { rawArguments: '{"key":"sk-secret"}', scrubbedArguments: '{"key":"[redacted]"}' };
      await store.steps.record(stepOf(run, [call("a", secret), call("b", { ...secret, client: true })]));
      const argumentsOf = async () => (await store.steps.list(run.id))[0]?.calls.map((c) => c.arguments);
      // A client's call is never run by us, so its raw form is not kept at all.
      expect(await argumentsOf()).toEqual([secret.rawArguments, secret.scrubbedArguments]);
      await store.steps.settle({ ...keyOf(run, 0), result: done, at: start });
      expect(await argumentsOf()).toEqual([secret.scrubbedArguments, secret.scrubbedArguments]);
    });

    test("a call with effects starts once; one without may start again", async () => {
      const store = await open();
      const run = await accepted(store);
      await store.steps.record(stepOf(run, [call("a"), call("b", { effect: "none" })]));
      const startCall = (index: number) => store.steps.startCall({ ...keyOf(run, index), at: start });
      expect(await startCall(0)).toEqual({ kind: "started" });
      expect(await startCall(0)).toEqual({ kind: "refused", code: "fenced" });
      expect(await startCall(1)).toEqual({ kind: "started" });
      expect(await startCall(1)).toEqual({ kind: "started" });
      await store.steps.settle({ ...keyOf(run, 1), result: done, at: start });
      expect(await startCall(1)).toEqual({ kind: "refused", code: "fenced" });
      expect(await startCall(7)).toEqual({ kind: "refused", code: "fenced" });
    });

    test("a settled call never changes, and a zombie settles nothing", async () => {
      const store = await open();
      const run = await accepted(store);
      await store.steps.record(stepOf(run, [call("a"), call("b")]));
      await store.steps.settle({ ...keyOf(run, 0), result: done, at: start });
      const again = { ...keyOf(run, 0), result: { ok: false, text: "other" }, at: start };
      expect(await store.steps.settle(again)).toEqual({ kind: "refused", code: "fenced" });
      await store.runs.resume(run.id, start);
      const late = { ...keyOf(run, 1), result: done, at: start };
      expect(await store.steps.settle(late)).toEqual({ kind: "refused", code: "fenced" });
      expect(await store.steps.record(stepOf(run, [], { step: 1 }))).toEqual({
        kind: "refused",
        code: "fenced",
      });
      const calls = (await store.steps.list(run.id))[0]?.calls;
      expect(calls?.map((c) => c.result)).toEqual([done, null]);
    });

    test("the end settles what is open, so that the history stays paired", async () => {
      const store = await open();
      const run = await accepted(store);
      await store.steps.record(
        stepOf(run, [call("a"), call("b", { started: true }), call("c", { client: true })]),
      );
      await store.steps.settle({ ...keyOf(run, 0), result: done, at: start });
      const end = { state: "cancelled", finishReason: null, reason: "user", output: "so far" } as const;
      await store.runs.finish(finishRequest(run, end));
      const history = await historyOf(store);
      expect(outline(history)).toEqual([
        "user",
        "assistant(a,b,c)",
        "tool:a",
        "tool:b",
        "tool:c",
        "assistant",
      ]);
      expect(history.slice(2, 5).map((message) => message.content)).toEqual([
        "done",
        "interrupted",
        "interrupted",
      ]);
      expect(await store.sessions.openClientCalls(session)).toEqual([]);
    });

    test("client calls stay open over the end of their run, until the client answers", async () => {
      const store = await open();
      const run = await accepted(store);
      await store.steps.record(
        stepOf(run, [call("s"), call("c1", { client: true }), call("c2", { client: true })]),
      );
      await store.steps.settle({ ...keyOf(run, 0), result: done, at: start });
      const finished = await store.runs.finish(finishRequest(run, awaiting));
      const clientCalls = [
        { id: "c1", name: "bash", arguments: '{"command":"echo c1"}' },
        { id: "c2", name: "bash", arguments: '{"command":"echo c2"}' },
      ];
      expect(finished).toMatchObject({ run: { finishReason: "tool_calls", clientCalls } });
      expect(await store.runs.get(run.id)).toMatchObject({ clientCalls });
      expect(await store.sessions.openClientCalls(session)).toEqual(["c1", "c2"]);
      await accepted(store, { messages: [toolAnswer("c2", "two"), toolAnswer("c1", "one")] });
      expect(outline(await historyOf(store))).toEqual([
        "user",
        "assistant(s,c1,c2)",
        "tool:s",
        "tool:c2",
        "tool:c1",
      ]);
      expect(await store.sessions.openClientCalls(session)).toEqual([]);
    });

    test("what the client passes over is answered for it, and what nobody asked stays out", async () => {
      const store = await open();
      const run = await accepted(store);
      await store.steps.record(stepOf(run, [call("c1", { client: true }), call("c2", { client: true })]));
      await store.runs.finish(finishRequest(run, awaiting));
      const messages = [
        user("never mind"),
        toolAnswer("c2", "two"),
        toolAnswer("c2", "twice"),
        toolAnswer("zz", "?"),
      ];
      const next = await accepted(store, { messages });
      const history = await historyOf(store);
      expect(outline(history)).toEqual(["user", "assistant(c1,c2)", "tool:c1", "tool:c2", "user"]);
      expect(history[2]?.content).toBe(notAnswered);
      expect((await store.runs.get(next.id))?.input.messages).toEqual([
        toolAnswer("c2", "two"),
        user("never mind"),
      ]);
    });

    test("a message that queued before the client was asked passes its calls over", async () => {
      const store = await open();
      const run = await accepted(store);
      await accepted(store, { messages: [user("next")] });
      await store.steps.record(stepOf(run, [call("c1", { client: true })]));
      await store.runs.finish(finishRequest(run, awaiting));
      await store.runs.startNext(session, { queuedAfter: 0, at: start });
      expect(outline(await historyOf(store))).toEqual(["user", "assistant(c1)", "tool:c1", "user"]);
    });

    test("an ephemeral run's transcript is its input and its settled steps", async () => {
      const store = await open();
      const run = await accepted(store, { ephemeral: true, messages: [user("a"), user("line\nfeed")] });
      await store.steps.record(stepOf(run, [call("x"), call("y", { effect: "none" })]));
      const seen = async () =>
        (await store.sessions.transcript(run)).map(({ wire }) => JSON.parse(Buffer.from(wire).toString()));
      expect(outline(await seen())).toEqual(["user", "user"]);
      await store.steps.settle({ ...keyOf(run, 0), result: done, at: start });
      await store.steps.settle({ ...keyOf(run, 1), result: done, at: start });
      await store.steps.record(stepOf(run, [call("z")], { step: 1 }));
      expect(outline(await seen())).toEqual(["user", "user", "assistant(x,y)", "tool:x", "tool:y"]);
    });

    test("a stateless client's call ids lead back to its step, for a day and for its principal only", async () => {
      const store = await open();
      const run = await accepted(store, { ephemeral: true });
      const step = stepOf(run, [call("s"), call("c1", { client: true })], { at: start });
      await store.steps.record(step);
      await store.steps.settle({ ...keyOf(run, 0), result: done, at: start });
      await store.runs.finish(finishRequest(run, awaiting));
      expect(await store.steps.findByCall(alice, "c1", start + 60_000)).toMatchObject({
        runId: run.id,
        step: {
          wire: step.wire,
          calls: [
            { callId: "s", result: done },
            { callId: "c1", client: true },
          ],
        },
      });
      expect(await store.steps.findByCall(alice, "c1", start + 24 * 3_600_000)).toBeNull();
      expect(await store.steps.findByCall(asId<Principal>("api:web/eve"), "c1", start)).toBeNull();
      expect(await store.steps.findByCall(alice, "s", start)).toBeNull();
    });

    test("usage of steps adds up in the run, so that whoever takes it over knows it", async () => {
      const store = await open();
      const run = await accepted(store);
      const usage = { promptTokens: 3, completionTokens: 2, cachedTokens: 1 };
      await store.steps.record(stepOf(run, [], { usage }));
      await store.steps.record(stepOf(run, [], { usage, step: 1 }));
      expect((await store.runs.resume(run.id, start))?.usage).toEqual({
        promptTokens: 6,
        completionTokens: 4,
        cachedTokens: 2,
      });
    });

    test("a step is told as it happens", async () => {
      const store = await open();
      const run = await accepted(store);
      await store.steps.record(stepOf(run, [call("a")]));
      await store.steps.startCall({ ...keyOf(run), at: start });
      await store.steps.settle({ ...keyOf(run), result: done, at: start });
      expect((await eventTypesOf(store)).slice(2)).toEqual([
        "tool.requested",
        "tool.started",
        "tool.finished",
        "message.added",
        "message.added",
      ]);
    });
  });
}
