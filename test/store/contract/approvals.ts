import { describe, expect, test } from "vitest";
import type { Run } from "../../../src/domain/run.ts";
import { type ApprovalId, asId, type SessionId } from "../../../src/domain/ids.ts";
import type { Store } from "../../../src/store/ports.ts";
import {
  accepted,
  alice,
  call,
  eventTypesOf,
  finishRequest,
  historyOf,
  keyOf,
  outline,
  question,
  session,
  start,
  stepOf,
} from "../requests.ts";
import type { Open } from "./open.ts";

const answer = { by: "local:alice", deniedResult: "denied", idempotency: null, at: start + 500 };

async function asked(store: Store, sessionId: SessionId = session): Promise<{ run: Run; id: ApprovalId }> {
  const run = await accepted(store, { sessionId });
  await store.steps.record(stepOf(run, [call("a"), call("b", { effect: "none" })]));
  const open = question(run);
  await store.approvals.ask(open);
  return { run, id: open.id };
}

export function approvalContract(open: Open): void {
  describe("approvals", () => {
    test("a question makes its run wait, and is found by id, session and list", async () => {
      const store = await open();
      const { run, id } = await asked(store);
      const approval = await store.approvals.get(id);
      expect(approval).toEqual({
        id,
        runId: run.id,
        sessionId: session,
        callId: "a",
        tool: "bash",
        arguments: '{"command":"echo a"}',
        reason: "bash changes things",
        pattern: "echo",
        state: "pending",
        decidedBy: null,
        createdAt: start + 200,
        decidedAt: null,
        expiresAt: start + 200 + 900_000,
      });
      expect(await store.approvals.pendingOf(session)).toEqual(approval);
      const page = { cursor: null, limit: 10 };
      const { data } = await store.approvals.list({ principal: alice, states: ["pending"], page });
      expect(data).toEqual([approval]);
      expect((await store.approvals.list({ states: ["denied"], page })).data).toEqual([]);
      expect(await store.runs.get(run.id)).toMatchObject({ state: "waiting", approvalId: id, activeMs: 50 });
      expect((await eventTypesOf(store)).slice(-2)).toEqual(["approval.requested", "run.waiting"]);
    });

    test("while it waits, calls without effects still settle and no second question is asked", async () => {
      const store = await open();
      const { run } = await asked(store);
      const settled = await store.steps.settle({
        ...keyOf(run, 1),
        result: { ok: true, text: "x" },
        at: start,
      });
      expect(settled).toEqual({ kind: "settled", settled: false });
      expect(await store.approvals.ask(question(run))).toEqual({ kind: "refused", code: "fenced" });
    });

    test("approved: the call is marked, the run waits on until it is resumed", async () => {
      const store = await open();
      const { run, id } = await asked(store);
      const decided = await store.approvals.decide({ id, outcome: "approve", ...answer });
      expect(decided).toMatchObject({
        kind: "decided",
        approval: { state: "approved", decidedBy: "local:alice" },
      });
      expect(decided).toEqual({ kind: "decided", approval: await store.approvals.get(id) });
      expect(await store.runs.get(run.id)).toMatchObject({ state: "waiting", attempt: 1 });
      expect((await store.steps.list(run.id))[0]?.calls[0]).toMatchObject({
        approved: true,
        state: "pending",
      });
      expect(await store.runs.resume(run.id, start)).toMatchObject({
        state: "running",
        approvalId: null,
        attempt: 2,
      });
      expect(await store.approvals.grants(session)).toEqual([]);
      expect(await store.approvals.pendingOf(session)).toBeNull();
    });

    test("always also stores the grant, for this session only", async () => {
      const store = await open();
      const { id } = await asked(store);
      await store.approvals.decide({ id, outcome: "always", ...answer });
      expect(await store.approvals.grants(session)).toEqual([{ tool: "bash", pattern: "echo" }]);
      expect(await store.approvals.grants(asId<SessionId>("other"))).toEqual([]);
    });

    for (const outcome of ["deny", "expired"] as const) {
      test(`${outcome} settles the call with the result that says so`, async () => {
        const store = await open();
        const { run, id } = await asked(store);
        await store.approvals.decide({ id, outcome, ...answer });
        const state = outcome === "deny" ? "denied" : "expired";
        expect(await store.approvals.get(id)).toMatchObject({ state });
        expect((await store.steps.list(run.id))[0]?.calls[0]).toMatchObject({
          state: "settled",
          result: { ok: false, text: "denied" },
        });
      });
    }

    test("the second answer is refused and changes nothing", async () => {
      const store = await open();
      const { id } = await asked(store);
      const both = await Promise.all([
        store.approvals.decide({ id, outcome: "deny", ...answer }),
        store.approvals.decide({ id, outcome: "always", ...answer }),
      ]);
      expect(both).toMatchObject([
        { kind: "decided" },
        { kind: "refused", code: "approval_decided", approval: { state: "denied" } },
      ]);
      expect(await store.approvals.grants(session)).toEqual([]);
      const nobody = { id: asId<ApprovalId>("nobody"), outcome: "deny", ...answer } as const;
      expect(await store.approvals.decide(nobody)).toEqual({
        kind: "refused",
        code: "not_found",
        approval: null,
      });
    });

    test("the end of the run withdraws its question", async () => {
      const store = await open();
      const { run, id } = await asked(store);
      const end = { state: "cancelled", reason: "superseded", message: null, output: null } as const;
      await store.runs.finish(finishRequest(run, end));
      expect(await store.approvals.get(id)).toMatchObject({ state: "withdrawn", decidedBy: "system" });
      expect(await store.approvals.decide({ id, outcome: "approve", ...answer })).toMatchObject({
        kind: "refused",
      });
      expect(outline(await historyOf(store))).toEqual(["user", "assistant(a,b)", "tool:a", "tool:b"]);
    });

    test("taking the run over while its question is open withdraws it, so that it is asked again", async () => {
      const store = await open();
      const { run, id } = await asked(store);
      const resumed = await store.runs.resume(run.id, start);
      expect(await store.approvals.get(id)).toMatchObject({ state: "withdrawn" });
      const again = question(run, { call: keyOf({ id: run.id, attempt: resumed?.attempt ?? 0 }) });
      expect(await store.approvals.ask(again)).toEqual({ kind: "asked" });
    });

    test("what is due comes oldest first, with the time of the next", async () => {
      const store = await open();
      const ids: ApprovalId[] = [];
      for (const [name, expiresAt] of [
        ["x", 30],
        ["y", 10],
        ["z", 20],
      ] as const) {
        const run = await accepted(store, { sessionId: asId<SessionId>(name) });
        await store.steps.record(stepOf(run, [call(name)]));
        const open1 = question(run, { expiresAt: start + expiresAt });
        await store.approvals.ask(open1);
        ids.push(open1.id);
      }
      const [x, y, z] = ids;
      const due = async (at: number, limit: number) => {
        const found = await store.approvals.due(start + at, limit);
        return [
          found.due.map((approval) => approval.id),
          found.nextAt === null ? null : found.nextAt - start,
        ];
      };
      expect(await due(5, 9)).toEqual([[], 10]);
      expect(await due(20, 9)).toEqual([[y, z], 30]);
      expect(await due(99, 2)).toEqual([[y, z], 30]);
      expect(await due(99, 9)).toEqual([[y, z, x], null]);
    });
  });
}
