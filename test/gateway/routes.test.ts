import { describe, expect, test } from "vitest";
import { type ApprovalId, asId } from "../../src/domain/ids.ts";
import { verifies } from "../support/verifies.ts";
import { chat, type Harness, openGateway } from "./harness.ts";

const ids = (response: { json(): { data: { id: string }[] } }) => response.json().data.map(({ id }) => id);

async function withTwoTokens() {
  const gateway = await openGateway();
  const alice = await gateway.token("alice", ["chat"]);
  const eve = await gateway.token("eve", ["chat", "tools", "impersonate"]);
  return { gateway, alice, eve };
}

/** Says something in a session and returns where it went. */
async function converse(gateway: Harness, headers: Record<string, string>, session = "s") {
  const response = await gateway.inject(chat("hi", { session_id: session }, headers));
  return {
    session: String(response.headers["x-session-id"]),
    run: String(response.headers["x-run-id"]),
  };
}

describe("system routes", () => {
  test("health, readiness, metrics", async () => {
    const gateway = await openGateway();
    expect((await gateway.inject({ url: "/health" })).json()).toEqual({ status: "ok", ts: 1_767_323_045 });
    expect((await gateway.inject({ url: "/ready" })).json()).toEqual({
      status: "ready",
      checks: { store: { ok: true } },
    });
    gateway.readiness.ready = false;
    const notReady = await gateway.inject({ url: "/ready" });
    expect([notReady.statusCode, notReady.json().status]).toEqual([503, "not_ready"]);
    const metrics = await gateway.inject({ url: "/metrics" });
    expect(metrics.headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8");
  });

  test("agents are models", async () => {
    const gateway = await openGateway();
    const { object, data } = (await gateway.inject({ url: "/v1/models" })).json();
    expect(object).toBe("list");
    expect(data).toEqual(
      ["beamclaw", "beamclaw/default", "beamclaw/coder"].map((id) => ({
        id,
        object: "model",
        created: 0,
        owned_by: "beamclaw",
      })),
    );
    for (const url of ["/v1/models/beamclaw/coder", "/v1/models/beamclaw%2Fcoder"]) {
      expect((await gateway.inject({ url })).json().id).toBe("beamclaw/coder");
    }
    expect((await gateway.inject({ url: "/v1/models/gpt-4o" })).statusCode).toBe(404);
  });
});

describe("sessions", () => {
  test("are listed, shown with their history, reset and deleted", async () => {
    const gateway = await openGateway();
    const { session, run } = await converse(gateway, {});
    expect((await gateway.inject({ url: "/v1/sessions" })).json()).toEqual({
      data: [
        {
          id: session,
          user: "api:anonymous",
          agent: "default",
          channel: "http",
          created_at: "2026-01-02T03:04:05.678Z",
          updated_at: "2026-01-02T03:04:05.678Z",
          message_count: 0,
        },
      ],
      next_cursor: null,
    });
    const { data } = (await gateway.inject({ url: `/v1/sessions/${session}/messages` })).json();
    expect(data).toMatchObject([
      { seq: 0, role: "user", content: "hi", run_id: run, in_context: true },
      { seq: 1, role: "assistant", content: "Hello" },
    ]);
    const reset = await gateway.inject({ method: "POST", url: `/v1/sessions/${session}/reset` });
    expect(reset.json()).toEqual({ id: session, reset: true });
    const deleted = await gateway.inject({ method: "DELETE", url: `/v1/sessions/${session}` });
    expect(deleted.json()).toEqual({ id: session, deleted: true });
    expect((await gateway.inject({ url: `/v1/sessions/${session}` })).statusCode).toBe(404);
  });

  test("histories are paged by sequence number", async () => {
    const gateway = await openGateway();
    const { session } = await converse(gateway, {});
    const url = `/v1/sessions/${session}/messages?limit=1`;
    const first = (await gateway.inject({ url })).json();
    expect([first.data[0].seq, first.next_cursor]).toEqual([0, "0"]);
    const second = (await gateway.inject({ url: `${url}&cursor=0` })).json();
    expect([second.data[0].seq, second.next_cursor]).toEqual([1, "1"]);
    expect((await gateway.inject({ url: `${url}&cursor=1` })).json()).toEqual({
      data: [],
      next_cursor: null,
    });
  });

  test("with an open run a session is busy", async () => {
    const gateway = await openGateway();
    gateway.conversations.script = (run) => void run.ask();
    const { session } = await converse(gateway, {});
    const response = await gateway.inject({ method: "DELETE", url: `/v1/sessions/${session}` });
    expect([response.statusCode, response.json().error.code]).toEqual([409, "session_busy"]);
  });

  test("a token's own name for a session works in paths, too", async () => {
    const { gateway, alice } = await withTwoTokens();
    const { session } = await converse(gateway, alice, "my-project");
    const response = await gateway.inject({ url: "/v1/sessions/my-project", headers: alice });
    expect(response.json().id).toBe(session);
  });

  verifies(["W23"], "a token reaches its own sessions, runs and questions only", async () => {
    const { gateway, alice, eve } = await withTwoTokens();
    gateway.conversations.script = (run) => void run.ask();
    const { session, run } = await converse(gateway, alice);
    const [approval] = gateway.store.savedApprovals.keys();
    const reads = [`/v1/sessions/${session}`, `/v1/sessions/${session}/messages`, `/v1/runs/${run}`];
    for (const url of [...reads, `/v1/approvals/${approval}`]) {
      expect([url, (await gateway.inject({ url, headers: alice })).statusCode]).toEqual([url, 200]);
      for (const user of [{}, { "x-user-id": "alice/anonymous" }]) {
        const status = (await gateway.inject({ url, headers: { ...eve, ...user } })).statusCode;
        // With `impersonate` a caller may become anybody, but has to say so.
        expect([url, status]).toEqual([url, "x-user-id" in user ? 200 : 404]);
      }
    }
    for (const url of [`/v1/runs/${run}/events`, "/v1/sessions/s"]) {
      expect((await gateway.inject({ url, headers: eve })).statusCode).toBe(404);
    }
    for (const url of [`/v1/sessions/${session}/reset`, `/v1/runs/${run}/cancel`]) {
      expect((await gateway.inject({ method: "POST", url, headers: eve })).statusCode).toBe(404);
    }
    const deletion = await gateway.inject({ method: "DELETE", url: `/v1/sessions/${session}`, headers: eve });
    expect(deletion.statusCode).toBe(404);
    for (const url of ["/v1/sessions", "/v1/runs", "/v1/approvals"]) {
      expect(ids(await gateway.inject({ url, headers: eve }))).toEqual([]);
      expect(ids(await gateway.inject({ url, headers: alice }))).toHaveLength(1);
      expect(ids(await gateway.inject({ url, headers: { ...alice, "x-user-id": "bob" } }))).toEqual([]);
      expect(ids(await gateway.inject({ url }))).toHaveLength(1);
    }
    const talk = await gateway.inject(chat("hi", { session_id: session }, eve));
    expect(talk.statusCode).toBe(404);
  });
});

describe("runs", () => {
  test("show their state, times, usage and output", async () => {
    const gateway = await openGateway();
    const { session, run } = await converse(gateway, {});
    expect((await gateway.inject({ url: `/v1/runs/${run}` })).json()).toEqual({
      id: run,
      session_id: session,
      user: "api:anonymous",
      agent: "default",
      kind: "chat",
      state: "completed",
      created_at: "2026-01-02T03:04:05.678Z",
      started_at: "2026-01-02T03:04:05.678Z",
      ended_at: "2026-01-02T03:04:05.678Z",
      finish_reason: "stop",
      approval_id: null,
      error: null,
      usage: {
        prompt_tokens: 7,
        completion_tokens: 3,
        total_tokens: 10,
        prompt_tokens_details: { cached_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 0 },
      },
      output: "Hello",
    });
  });

  test("are listed newest first, by session and state, in pages", async () => {
    const gateway = await openGateway();
    const made = [];
    for (const session of ["a", "b", "a"]) made.push((await converse(gateway, {}, session)).run);
    gateway.conversations.script = (run) => void run.ask();
    made.push((await converse(gateway, {}, "a")).run);
    const list = async (query: string) => ids(await gateway.inject({ url: `/v1/runs?${query}` }));
    expect(await list("")).toEqual(made.toReversed());
    expect(await list("session_id=a&state=completed")).toEqual([made[2], made[0]]);
    expect(await list("state=waiting,running")).toEqual([made[3]]);
    const page = (await gateway.inject({ url: "/v1/runs?limit=3" })).json();
    expect(page.next_cursor).toBe("3");
    expect(await list(`limit=3&cursor=${page.next_cursor}`)).toEqual([made[0]]);
  });

  test.each([
    ["limit=0", "limit"],
    ["limit=201", "limit"],
    ["limit=x", "limit"],
    ["state=happy", "state"],
    ["cursor=%00", "cursor"],
  ])("?%s is refused", async (query, param) => {
    const gateway = await openGateway();
    const response = await gateway.inject({ url: `/v1/runs?${query}` });
    expect([response.statusCode, response.json().error.param]).toEqual([400, param]);
  });

  test("are cancelled once", async () => {
    const gateway = await openGateway();
    gateway.conversations.script = (run) => void run.ask();
    const { run } = await converse(gateway, {});
    const url = `/v1/runs/${run}/cancel`;
    const cancelled = await gateway.inject({ method: "POST", url, payload: {} });
    expect(cancelled.json()).toMatchObject({ id: run, state: "cancelled" });
    const again = await gateway.inject({ method: "POST", url });
    expect([again.statusCode, again.json().error.code]).toEqual([409, "run_ended"]);
  });
});

async function withQuestion(pattern: string | null = "ls") {
  const gateway = await openGateway();
  gateway.conversations.script = (run) => void run.ask({ pattern });
  const { run, session } = await converse(gateway, await gateway.token("web", ["chat"]));
  const [id = ""] = gateway.store.savedApprovals.keys();
  const decide = (decision: string, headers: Record<string, string> = {}) =>
    gateway.inject({ method: "POST", url: `/v1/approvals/${id}`, headers, payload: { decision } });
  return { gateway, run, session, id, decide };
}

describe("approvals", () => {
  test("a tool that cannot be allowed for good is not allowed for good", async () => {
    const { gateway, id, decide } = await withQuestion(null);
    const refused = await decide("always");
    expect([refused.statusCode, refused.json().error.param]).toEqual([400, "decision"]);
    expect(gateway.store.savedApprovals.get(asId<ApprovalId>(id))?.state).toBe("pending");
    expect((await decide("approve")).statusCode).toBe(200);
  });

  test("are listed by state and show what is asked", async () => {
    const { gateway, run, session, id } = await withQuestion();
    expect((await gateway.inject({ url: "/v1/approvals?state=pending" })).json()).toEqual({
      data: [
        {
          id,
          run_id: run,
          session_id: session,
          tool: "bash",
          arguments: '{"command":"ls"}',
          reason: "it runs a command",
          pattern: "ls",
          state: "pending",
          decided_by: null,
          created_at: "2026-01-02T03:04:05.678Z",
          decided_at: null,
          expires_at: "2026-01-02T03:19:05.678Z",
        },
      ],
      next_cursor: null,
    });
    expect(ids(await gateway.inject({ url: "/v1/approvals?state=denied,expired" }))).toEqual([]);
  });

  test("are answered once, and remember by whom", async () => {
    const { gateway, decide } = await withQuestion();
    const phone = await gateway.token("phone", ["approvals"]);
    const answered = await decide("approve", phone);
    expect(answered.json()).toMatchObject({ state: "approved", decided_by: "api:phone/anonymous" });
    const again = await decide("deny", phone);
    expect([again.statusCode, again.json().error.code]).toEqual([409, "approval_decided"]);
    expect(gateway.store.savedApprovals.values().next().value?.state).toBe("approved");
  });

  test("a token that may only talk may look at its own, and not answer", async () => {
    const { gateway, id, decide } = await withQuestion();
    expect((await decide("approve", await gateway.token("web2", ["chat", "tools"]))).statusCode).toBe(403);
    expect(gateway.store.savedApprovals.get(id)?.state).toBe("pending");
  });

  test("a decision that is none is refused", async () => {
    const { decide } = await withQuestion();
    const response = await decide("maybe");
    expect([response.statusCode, response.json().error.param]).toEqual([400, "decision"]);
  });
});
