import { describe, expect, test } from "vitest";
import { asId, type Principal, type SessionId } from "../../../src/domain/ids.ts";
import type { WireMessage } from "../../../src/domain/message.ts";
import { verifies } from "../../support/verifies.ts";
import {
  accepted,
  alice,
  call,
  eventTypesOf,
  finishRequest,
  historyOf,
  outline,
  question,
  session,
  start,
  stepOf,
  toolAnswer,
  user,
} from "../requests.ts";
import type { Open } from "./open.ts";

const picture = Buffer.from("not really a picture");
const withPicture: WireMessage = {
  role: "user",
  content: [
    { type: "text", text: "look" },
    {
      type: "image_url",
      image_url: { url: `data:image/png;base64,${picture.toString("base64")}`, detail: "low" },
    },
  ],
};

export function sessionContract(open: Open): void {
  describe("sessions", () => {
    test("messages page forward from a seq", async () => {
      const store = await open();
      await accepted(store, { messages: ["a", "b", "c"].map(user) });
      const page = await store.sessions.messages(session, 0, 1);
      expect(page).toMatchObject([{ seq: 1, wire: JSON.stringify(user("b")), createdAt: start }]);
      expect(await store.sessions.messages(session, 2, 10)).toEqual([]);
      expect(await store.sessions.messages(asId<SessionId>("nobody"), -1, 10)).toEqual([]);
    });

    test("the start of the visible history moves once per expectation, and nothing is deleted", async () => {
      const store = await open();
      const run = await accepted(store);
      await store.runs.finish(finishRequest(run));
      const move = { expected: 0, to: 2, at: start + 9 };
      const both = await Promise.all([
        store.sessions.moveStart(session, move),
        store.sessions.moveStart(session, move),
      ]);
      expect(both).toEqual([true, false]);
      expect(await store.sessions.get(session)).toMatchObject({
        startSeq: 2,
        messageCount: 2,
        updatedAt: start + 9,
      });
      expect(await store.sessions.transcript(run)).toEqual([]);
      expect(await historyOf(store)).toHaveLength(2);
      expect(await store.sessions.moveStart(session, { ...move, expected: 2, to: 3 })).toBe(false);
      expect(await store.sessions.moveStart(session, { ...move, expected: 2, to: 1 })).toBe(false);
    });

    test("after a reset nobody owes an answer any more", async () => {
      const store = await open();
      const run = await accepted(store);
      await store.steps.record(stepOf(run, [call("c1", { client: true })]));
      await store.runs.finish(
        finishRequest(run, { finishReason: "tool_calls", message: null, output: null }),
      );
      expect(await store.sessions.reset(session, start)).toBe("reset");
      expect((await eventTypesOf(store)).at(-1)).toBe("session.reset");
      expect(await store.sessions.openClientCalls(session)).toEqual([]);
      const next = await accepted(store, { messages: [toolAnswer("c1", "late"), user("hi")] });
      const seen = await store.sessions.transcript(next);
      expect(outline(seen.map(({ wire }) => JSON.parse(Buffer.from(wire).toString())))).toEqual(["user"]);
    });

    test("a reset waits for the session's runs", async () => {
      const store = await open();
      const run = await accepted(store);
      expect(await store.sessions.reset(session, start)).toBe("session_busy");
      await store.runs.finish(finishRequest(run));
      expect(await store.sessions.reset(session, start)).toBe("reset");
      expect(await store.sessions.transcript(run)).toEqual([]);
      expect(await store.sessions.reset(asId<SessionId>("nobody"), start)).toBe("not_found");
    });

    test("a session with open runs is busy; otherwise all that hangs on it goes with it", async () => {
      const store = await open();
      const run = await accepted(store);
      await store.steps.record(stepOf(run, [call("a")]));
      const asked = question(run);
      await store.approvals.ask(asked);
      expect(await store.sessions.delete(session)).toBe("session_busy");
      await store.runs.finish(finishRequest(run));
      const bystander = await accepted(store, { sessionId: asId<SessionId>("other") });
      expect(await store.sessions.delete(session)).toBe("deleted");
      expect(await store.sessions.delete(session)).toBe("not_found");
      expect(await store.sessions.get(session)).toBeNull();
      expect(await store.runs.get(run.id)).toBeNull();
      expect(await store.approvals.get(asked.id)).toBeNull();
      expect(await store.steps.list(run.id)).toEqual([]);
      expect(await historyOf(store)).toEqual([]);
      expect(await store.events.after(session, 0, { limit: 10 })).toEqual([]);
      expect(await store.runs.get(bystander.id)).toEqual(bystander);
    });

    test("lists are newest first and by principal, without sessions of stateless runs", async () => {
      const store = await open();
      const bob = asId<Principal>("api:web/bob");
      const ids = ["one", "two", "three"].map((id) => asId<SessionId>(id));
      for (const id of ids) await accepted(store, { sessionId: id, principal: id === ids[1] ? bob : alice });
      await accepted(store, { sessionId: asId<SessionId>("gone"), ephemeral: true });
      const page = await store.sessions.list({ page: { cursor: null, limit: 2 } });
      expect(page.data.map(({ id }) => id)).toEqual(["three", "two"]);
      const rest = await store.sessions.list({ page: { cursor: page.nextCursor, limit: 2 } });
      expect(rest).toMatchObject({ data: [{ id: "one" }], nextCursor: null });
      const his = await store.sessions.list({ principal: bob, page: { cursor: null, limit: 2 } });
      expect(his.data.map(({ id }) => id)).toEqual(["two"]);
    });

    verifies(
      "W18",
      "pictures of a message become files, referred to by the hash of their content",
      async () => {
        const store = await open();
        const run = await accepted(store, { messages: [withPicture] });
        const [entry] = await store.sessions.transcript(run);
        expect(entry?.attachments).toBe(true);
        const wire = Buffer.from(entry?.wire ?? []).toString();
        const id = /attachment:([0-9a-f]{64})/.exec(wire)?.[1] ?? "";
        expect(await store.attachments.get(asId(id))).toMatchObject({ mime: "image/png" });
        expect(Buffer.from((await store.attachments.get(asId(id)))?.bytes ?? [])).toEqual(picture);
        expect(wire).not.toContain("base64");
        expect(wire).toContain('"detail":"low"');
      },
    );

    verifies("W18", "a longer history costs a message the same: earlier rows are not touched", async () => {
      const store = await open();
      const before: unknown[] = [];
      for (let n = 0; n < 4; n += 1) {
        const run = await accepted(store, { messages: [user(`turn ${n}`)] });
        await store.runs.finish(finishRequest(run, { output: `answer ${n}` }));
        const now = await store.sessions.messages(session, -1, 100);
        expect(now.slice(0, before.length)).toEqual(before);
        before.splice(0, before.length, ...now);
      }
      expect(before).toHaveLength(8);
    });
  });
}
