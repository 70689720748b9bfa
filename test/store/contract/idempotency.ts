import { describe, expect, test } from "vitest";
import type { IdempotencyKey } from "../../../src/store/ports.ts";
import {
  acceptRequest,
  accepted,
  call,
  finishRequest,
  historyOf,
  keyOf,
  question,
  start,
  stepOf,
} from "../requests.ts";
import type { Open } from "./open.ts";

const key: IdempotencyKey = { token: "web", route: "/v1/chat/completions", key: "k1", bodyHash: "aa" };
const failed = {
  state: "failed",
  finishReason: null,
  message: null,
  output: null,
  error: { code: "internal", message: "x" },
} as const;

export function idempotencyContract(open: Open): void {
  describe("idempotency", () => {
    test("the same key and body lead to the same run, whatever its state", async () => {
      const store = await open();
      const run = await accepted(store, { idempotency: key });
      expect(run.keyed).toBe(true);
      const replayed = await store.runs.accept(acceptRequest({ idempotency: key }));
      expect(replayed).toMatchObject({ kind: "replayed", run: { id: run.id, state: "running" } });
      await store.runs.finish(finishRequest(run));
      const later = await store.runs.accept(acceptRequest({ idempotency: key }));
      expect(later).toMatchObject({ kind: "replayed", run: { id: run.id, output: "hi there" } });
      expect(await historyOf(store)).toHaveLength(2);
    });

    test("two racing requests with one key make one run", async () => {
      const store = await open();
      const outcomes = await Promise.all(
        [1, 2, 3].map(() => store.runs.accept(acceptRequest({ idempotency: key }))),
      );
      expect(outcomes.map(({ kind }) => kind)).toEqual(["started", "replayed", "replayed"]);
    });

    test("another body under the same key is a conflict; another token or route is another key", async () => {
      const store = await open();
      await accepted(store, { idempotency: key });
      const other = acceptRequest({ idempotency: { ...key, bodyHash: "bb" } });
      expect(await store.runs.accept(other)).toEqual({ kind: "refused", code: "idempotency_conflict" });
      for (const apart of [{ token: "cli" }, { route: "/v1/responses" }]) {
        const request = acceptRequest({ idempotency: { ...key, ...apart } });
        expect(await store.runs.accept(request)).toMatchObject({ kind: "queued" });
      }
    });

    test("a key is forgotten after a day", async () => {
      const store = await open();
      await accepted(store, { idempotency: key });
      const day = 24 * 3_600_000;
      const before = acceptRequest({ idempotency: key, at: start + day - 1 });
      expect(await store.runs.accept(before)).toMatchObject({ kind: "replayed" });
      const after = acceptRequest({ idempotency: key, at: start + day });
      expect(await store.runs.accept(after)).toMatchObject({ kind: "queued" });
    });

    test("a run that failed before any effect releases its key", async () => {
      const store = await open();
      const run = await accepted(store, { idempotency: key });
      await store.steps.record(stepOf(run, [call("c1", { effect: "none", started: true })]));
      await store.runs.finish(finishRequest(run, failed));
      const again = await store.runs.accept(acceptRequest({ idempotency: key }));
      expect(again).toMatchObject({ kind: "started" });
    });

    test("a run that failed after an effect may have begun is replayed", async () => {
      const store = await open();
      const run = await accepted(store, { idempotency: key });
      await store.steps.record(stepOf(run, [call("c1", { started: true })]));
      await store.runs.finish(finishRequest(run, failed));
      const again = await store.runs.accept(acceptRequest({ idempotency: key }));
      expect(again).toMatchObject({ kind: "replayed", run: { id: run.id, state: "failed" } });
    });

    test("the retry of an answer finds the run and answers no second question", async () => {
      const store = await open();
      const run = await accepted(store);
      await store.steps.record(stepOf(run, [call("c1"), call("c2")]));
      const first = question(run);
      await store.approvals.ask(first);
      const answer = {
        outcome: "approve",
        by: "alice",
        deniedResult: "no",
        idempotency: key,
        at: start,
      } as const;
      expect(await store.approvals.decide({ id: first.id, ...answer })).toMatchObject({ kind: "decided" });
      const resumed = await store.runs.resume(run.id, start + 300);
      const second = question(run, { call: keyOf({ id: run.id, attempt: resumed?.attempt ?? 0 }, 1) });
      expect(await store.approvals.ask(second)).toEqual({ kind: "asked" });
      const retried = await store.approvals.decide({ id: second.id, ...answer });
      expect(retried).toMatchObject({ kind: "refused", approval: { state: "pending" } });
      const found = await store.runs.accept(acceptRequest({ idempotency: key }));
      expect(found).toMatchObject({ kind: "replayed", run: { id: run.id } });
    });
  });
}
