import { describe, expect, test } from "vitest";
import { asId, type RunId, type SessionId } from "../../../src/domain/ids.ts";
import { verifies } from "../../support/verifies.ts";
import {
  acceptRequest,
  accepted,
  alice,
  assistantWire,
  eventTypesOf,
  finishRequest,
  historyOf,
  inputOf,
  outline,
  runOf,
  session,
  start,
  user,
} from "../requests.ts";
import type { Open } from "./open.ts";

export function runContract(open: Open): void {
  describe("runs", () => {
    test("a run on an idle session starts at once and its input joins the history", async () => {
      const store = await open();
      const outcome = await store.runs.accept(acceptRequest());
      expect(outcome).toMatchObject({ kind: "started", run: { state: "running", attempt: 1 } });
      expect(await historyOf(store)).toEqual([user("hello")]);
      expect(await eventTypesOf(store)).toEqual(["run.started", "message.added"]);
      expect(await store.sessions.get(session)).toMatchObject({ principal: alice, messageCount: 1 });
    });

    test("a stored run reads back as it was handed out", async () => {
      const store = await open();
      const started = await accepted(store, { messages: [user("a"), user("b")] });
      expect(await store.runs.get(started.id)).toEqual(started);
      const queued = await accepted(store, { messages: [user("c")] });
      expect(await store.runs.get(queued.id)).toEqual(queued);
      const apart = await accepted(store, { sessionId: asId<SessionId>("s2"), ephemeral: true });
      expect(await store.runs.get(apart.id)).toEqual(apart);
      expect(apart.input).toEqual(inputOf([user("hello")]));
    });

    verifies("W13", "of two racing first messages one starts and the other queues behind it", async () => {
      const store = await open();
      const [first, second] = await Promise.all([
        store.runs.accept(acceptRequest({ messages: [user("first")] })),
        store.runs.accept(acceptRequest({ messages: [user("second")] })),
      ]);
      expect([first.kind, second.kind]).toEqual(["started", "queued"]);
      const { data: sessions } = await store.sessions.list({ page: { cursor: null, limit: 10 } });
      expect(sessions).toHaveLength(1);
      expect(await historyOf(store)).toEqual([user("first")]);
    });

    test("a run whose caller has no free slot queues on an idle session", async () => {
      const store = await open();
      expect(await store.runs.accept(acceptRequest({ start: false }))).toMatchObject({ kind: "queued" });
      expect(await historyOf(store)).toEqual([]);
    });

    test("queued runs start in the order of their acceptance, one at a time", async () => {
      const store = await open();
      const first = await accepted(store, { messages: [user("1")] });
      const second = await accepted(store, { messages: [user("2")], at: start + 1 });
      const third = await accepted(store, { messages: [user("3")], at: start + 2 });
      const next = () => store.runs.startNext(session, { queuedAfter: 0, at: start + 2_000 });
      expect(await next()).toBeNull();

      expect(await store.runs.finish(finishRequest(first))).toMatchObject({ queued: true });
      expect(await next()).toMatchObject({ id: second.id, state: "running", attempt: 1 });
      expect(await next()).toBeNull();
      await store.runs.finish(finishRequest({ ...second, attempt: 1 }));
      const last = await next();
      expect(last?.id).toBe(third.id);
      expect(last?.input).toEqual(inputOf([user("3")]));
      expect(await store.runs.finish(finishRequest({ ...third, attempt: 1 }))).toMatchObject({
        queued: false,
      });
      expect((await historyOf(store)).map((message) => message.content)).toEqual([
        "1",
        "hi there",
        "2",
        "hi there",
        "3",
        "hi there",
      ]);
    });

    test("queued runs that waited too long expire on the way", async () => {
      const store = await open();
      const stale = await accepted(store, { start: false, at: start });
      const fresh = await accepted(store, { start: false, at: start + 5_000 });
      const next = await store.runs.startNext(session, { queuedAfter: start + 1, at: start + 6_000 });
      expect(next?.id).toBe(fresh.id);
      expect(await store.runs.get(stale.id)).toMatchObject({ state: "expired", endedAt: start + 6_000 });
      expect(await eventTypesOf(store)).toContain("run.expired");
      expect(await store.runs.startNext(asId<SessionId>("nobody"), { queuedAfter: 0, at: start })).toBeNull();
    });

    test("full queues refuse and leave nothing behind", async () => {
      const store = await open();
      await accepted(store);
      await accepted(store, { limits: { perSession: 1, total: 1 } });
      const inSession = acceptRequest({ limits: { perSession: 1, total: 9 } });
      expect(await store.runs.accept(inSession)).toEqual({ kind: "refused", code: "queue_full" });
      const elsewhere = asId<SessionId>("elsewhere");
      const inAll = acceptRequest({
        sessionId: elsewhere,
        start: false,
        limits: { perSession: 9, total: 1 },
      });
      expect(await store.runs.accept(inAll)).toEqual({ kind: "refused", code: "overloaded" });
      expect(await store.sessions.get(elsewhere)).toBeNull();
      expect(await store.runs.get(inSession.run.id)).toBeNull();
      // A free lane needs no place in the queue.
      expect(
        await store.runs.accept(acceptRequest({ sessionId: elsewhere, limits: inAll.limits })),
      ).toMatchObject({
        kind: "started",
      });
    });

    test("the answer joins the history and the output is kept", async () => {
      const store = await open();
      const run = await accepted(store);
      const usage = { promptTokens: 10, completionTokens: 5 };
      const finished = await store.runs.finish(finishRequest(run, { usage, activeMs: 12 }));
      const expected = {
        state: "completed",
        finishReason: "stop",
        output: "hi there",
        usage,
        activeMs: 12,
        endedAt: start + 1_000,
      };
      expect(finished).toMatchObject({ kind: "finished", run: expected });
      const stored = await store.runs.get(run.id);
      expect(stored).toMatchObject(expected);
      expect(finished).toEqual({ kind: "finished", run: stored, queued: false });
      expect(outline(await historyOf(store))).toEqual(["user", "assistant"]);
      expect(await eventTypesOf(store)).toEqual([
        "run.started",
        "message.added",
        "message.added",
        "run.completed",
      ]);
    });

    test("a failed run keeps its partial text, its error and no message", async () => {
      const store = await open();
      const run = await accepted(store);
      const error = { code: "provider_interrupted", message: "broke off", retryAfterSeconds: 3 };
      const end = { state: "failed", finishReason: null, message: null, output: "half a", error } as const;
      await store.runs.finish(finishRequest(run, end));
      expect(await store.runs.get(run.id)).toMatchObject({ state: "failed", output: "half a", error });
      expect(outline(await historyOf(store))).toEqual(["user"]);
    });

    test("an output that differs from the last message is kept as it is", async () => {
      const store = await open();
      const run = await accepted(store);
      const message = {
        id: finishRequest(run).message?.id ?? asId(""),
        wire: assistantWire("all"),
        extra: "{}",
      };
      await store.runs.finish(finishRequest(run, { message, output: "al" }));
      expect(await store.runs.get(run.id)).toMatchObject({ output: "al" });
      expect((await historyOf(store)).at(-1)).toEqual({ role: "assistant", content: "all" });
    });

    test("an ephemeral run leaves no messages but keeps its output", async () => {
      const store = await open();
      const run = await accepted(store, { ephemeral: true });
      await store.runs.finish(finishRequest(run));
      expect(await store.runs.get(run.id)).toMatchObject({ output: "hi there", state: "completed" });
      expect(await store.sessions.messages(session, -1, 10)).toEqual([]);
      expect(await store.sessions.get(session)).toBeNull();
    });

    test("a queued run can be cancelled before it starts; its input never joins", async () => {
      const store = await open();
      await accepted(store, { messages: [user("first")] });
      const queued = await accepted(store, { messages: [user("second")] });
      const end = { state: "cancelled", message: null, output: null, reason: "user" } as const;
      expect(await store.runs.finish(finishRequest(queued, end))).toMatchObject({ kind: "finished" });
      expect(await historyOf(store)).toEqual([user("first")]);
      expect(await store.runs.get(queued.id)).toMatchObject({
        state: "cancelled",
        input: inputOf([user("second")]),
      });
    });

    test("the fence: an older attempt, an ended run and an unknown one cannot write", async () => {
      const store = await open();
      const zombie = await accepted(store);
      const owner = await store.runs.resume(zombie.id, start + 10);
      expect(owner).toMatchObject({ attempt: 2, state: "running", input: zombie.input });
      const fenced = { kind: "refused", code: "fenced" };
      expect(await store.runs.finish(finishRequest(zombie))).toEqual(fenced);
      expect(await store.runs.finish(finishRequest({ ...zombie, attempt: 2 }))).toMatchObject({
        kind: "finished",
      });
      expect(await store.runs.finish(finishRequest({ ...zombie, attempt: 2 }))).toEqual(fenced);
      expect(await store.runs.resume(zombie.id, start + 20)).toBeNull();
      expect(await store.runs.finish(finishRequest({ id: asId<RunId>("nobody"), attempt: 1 }))).toEqual(
        fenced,
      );
      expect(outline(await historyOf(store))).toEqual(["user", "assistant"]);
    });

    test("open work is found by session, oldest first; ended work is not", async () => {
      const store = await open();
      const [one, two] = [asId<SessionId>("one"), asId<SessionId>("two")];
      const ended = await accepted(store, { sessionId: asId<SessionId>("done") });
      await store.runs.finish(finishRequest(ended));
      await accepted(store, { sessionId: two });
      await accepted(store, { sessionId: one });
      await accepted(store, { sessionId: two });
      expect(await store.runs.openSessions()).toEqual([
        { sessionId: two, states: ["running", "queued"] },
        { sessionId: one, states: ["running"] },
      ]);
    });

    test("lists are newest first, filtered, and paged without gap or repeat", async () => {
      const store = await open();
      const ids: RunId[] = [];
      for (let n = 0; n < 5; n += 1) ids.push((await accepted(store, { at: start + n })).id);
      const other = asId<SessionId>("other");
      await accepted(store, { sessionId: other });
      const seen: RunId[] = [];
      let cursor: string | null = null;
      do {
        const page = await store.runs.list({ sessionId: session, page: { cursor, limit: 2 } });
        seen.push(...page.data.map((run) => run.id));
        cursor = page.nextCursor;
      } while (cursor !== null);
      expect(seen).toEqual(ids.toReversed());
      const queued = await store.runs.list({
        states: ["queued"],
        principal: alice,
        page: { cursor: null, limit: 9 },
      });
      expect(queued.data.map((run) => run.state)).toEqual(["queued", "queued", "queued", "queued"]);
      expect(queued.data[0]?.input).toEqual(inputOf([user("hello")]));
      const page = { cursor: "x", limit: 1 };
      await expect(store.runs.list({ page })).rejects.toMatchObject({ code: "invalid_request" });
    });
  });
  test("a run that was accepted keeps its id: the second of the same id is a defect", async () => {
    const store = await open();
    const run = await accepted(store);
    await expect(store.runs.accept(acceptRequest({ id: run.id }))).rejects.toMatchObject({
      code: "internal",
    });
    expect(runOf(await store.runs.accept(acceptRequest()))).toMatchObject({ state: "queued" });
  });
}
