import { describe, expect, test } from "vitest";
import type { Event } from "../../../src/domain/event.ts";
import { asId, type RunId, type SessionId } from "../../../src/domain/ids.ts";
import { accepted, finishRequest, session, start } from "../requests.ts";
import type { Open } from "./open.ts";

export function eventContract(open: Open): void {
  describe("events", () => {
    test("listeners hear each commit's events once, in order, as they are stored", async () => {
      const store = await open();
      const heard: Event[] = [];
      const stop = store.events.subscribe((events) => heard.push(...events));
      const run = await accepted(store);
      expect(heard.map((event) => event.body.type)).toEqual(["run.started", "message.added"]);
      await store.runs.finish(finishRequest(run));
      stop();
      await accepted(store);
      expect(heard).toEqual((await store.events.after(session, 0, { limit: 10 })).slice(0, 4));
      expect(heard.at(-1)).toEqual({
        sessionId: session,
        seq: 4,
        runId: run.id,
        ts: start + 1_000,
        body: { type: "run.completed", finishReason: "stop", messageSeq: 1 },
      });
    });

    test("readers go on from where they were, within a limit", async () => {
      const store = await open();
      const run = await accepted(store);
      await store.runs.finish(finishRequest(run));
      const seqs = async (after: number, limit: number) =>
        (await store.events.after(session, after, { limit })).map((event) => event.seq);
      expect(await seqs(0, 2)).toEqual([1, 2]);
      expect(await seqs(2, 1_000)).toEqual([3, 4]);
      expect(await seqs(4, 10)).toEqual([]);
      expect(await store.events.after(asId<SessionId>("nobody"), 0, { limit: 10 })).toEqual([]);
    });

    test("one run's events are told apart, also where runs overlap in the journal", async () => {
      const store = await open();
      const first = await accepted(store);
      const second = await accepted(store);
      await store.runs.finish(finishRequest(first));
      await store.runs.startNext(session, { queuedAfter: 0, at: start });
      const of = async (runId: RunId, after = 0) =>
        (await store.events.after(session, after, { runId, limit: 100 })).map((event) => event.seq);
      expect(await of(first.id)).toEqual([1, 2, 4, 5]);
      expect(await of(second.id)).toEqual([3, 6, 7]);
      expect(await of(second.id, 3)).toEqual([6, 7]);
      expect(await of(asId<RunId>("nobody"))).toEqual([]);
    });
  });
}
