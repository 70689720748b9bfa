import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Home } from "../../src/app/home.ts";
import { BeamclawError } from "../../src/domain/error-catalogue.ts";
import { beamclaw, prepareHome, type Ran, startDouble } from "../support/daemon-double.ts";

let base = "";
let home: Home;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "beamclaw-records-"));
  home = prepareHome(base);
});
afterEach(() => {
  rmSync(base, { recursive: true });
});

const run = (line: string): Promise<Ran> => beamclaw(home, line.split(" "));

interface PageQuery {
  Querystring: { cursor?: string; limit?: string; state?: string };
}

const messages = Array.from({ length: 450 }, (_, seq) => ({ seq, role: "user", content: `message ${seq}` }));

/** `/v1` as far as these commands use it, recording what changes something. */
function records(calls: string[]) {
  return (app: FastifyInstance): void => {
    app.get<PageQuery>("/v1/sessions", ({ query }) => {
      const start = Number(query.cursor ?? 0);
      const end = start + Math.min(2, Number(query.limit));
      const data = [0, 1, 2, 3, 4].slice(start, end).map((index) => ({ id: `session-${index}`, user: "me" }));
      return { data, next_cursor: end < 5 ? String(end) : null };
    });
    app.get("/v1/sessions/:id", () => ({ id: "session-1", error: null, message_count: 450 }));
    app.get<PageQuery>("/v1/sessions/:id/messages", ({ query }) => {
      const start = Number(query.cursor ?? -1) + 1;
      const data = messages.slice(start, start + Number(query.limit));
      const last = data.at(-1);
      return { data, next_cursor: last === undefined || last.seq === 449 ? null : String(last.seq) };
    });
    app.get<PageQuery>("/v1/runs", ({ query }) => ({
      data: [{ id: "run-1", state: query.state ?? "any", created_at: "2026-01-01T00:00:00.000Z" }],
      next_cursor: null,
    }));
    app.get("/v1/runs/:id", () => ({ id: "run-1", usage: { total_tokens: 3 }, ended_at: null }));
    app.get<PageQuery>("/v1/approvals", ({ query }) => ({
      data: [
        { id: "approval-1", state: query.state ?? "any", tool: "bash", arguments: '{"script":"ls\\n-l"}' },
      ],
      next_cursor: null,
    }));
    app.delete("/v1/sessions/:id", ({ url }) => calls.push(url));
    app.post("/v1/runs/:id/cancel", ({ url }) => calls.push(url));
    app.post("/v1/approvals/:id", ({ url, body }) => {
      if (url.endsWith("old")) throw new BeamclawError("approval_decided", "it was denied before");
      return calls.push(`${url} ${JSON.stringify(body)}`);
    });
  };
}

test("lists follow their cursors up to the limit", async () => {
  await using _ = await startDouble(home, records([]));
  const ids = async (line: string): Promise<unknown[]> => JSON.parse((await run(line)).out);
  expect(await ids("sessions list --json")).toHaveLength(5);
  expect(await ids("sessions list --json --limit 3")).toHaveLength(3);
  expect((await run("sessions list")).out).toMatch(/^ID +USER.*\nsession-0 +me/);
  expect(await run("sessions list --limit 0")).toMatchObject({ code: 2 });
});

test("runs are filtered by state and shown in full", async () => {
  await using _ = await startDouble(home, records([]));
  expect((await run("runs list --state running,waiting")).out).toContain("running,waiting");
  expect((await run("runs show run-1")).out).toBe('id: run-1\nusage: {"total_tokens":3}\nended_at: -\n');
});

test("approvals are listed on one line each, open ones unless all are asked for", async () => {
  await using _ = await startDouble(home, records([]));
  expect((await run("approvals list")).out).toMatch(/approval-1 +pending +bash +\{"script":"ls\\n-l"\}/);
  expect((await run("approvals list --all")).out).toContain("any");
});

test("the end of a session is shown, all of it exported", async () => {
  await using _ = await startDouble(home, records([]));
  const shown = await run("sessions show session-1 --limit 2");
  expect(shown.out).toBe(
    "id: session-1\nerror: -\nmessage_count: 450\n\n[user] message 448\n\n[user] message 449\n",
  );
  const lines = (await run("sessions export session-1")).out.trimEnd().split("\n");
  expect(lines.map((line): unknown => JSON.parse(line))).toEqual(messages);
});

test("what changes something says so, with ids kept inside their path segment", async () => {
  const calls: string[] = [];
  await using _ = await startDouble(home, records(calls));
  for (const line of [
    "runs cancel a/b",
    "sessions delete x?y",
    "approvals approve p",
    "approvals always q",
  ]) {
    expect(await run(line)).toMatchObject({ code: 0, err: "" });
  }
  expect(calls).toEqual([
    "/v1/runs/a%2Fb/cancel",
    "/v1/sessions/x%3Fy",
    '/v1/approvals/p {"decision":"approve"}',
    '/v1/approvals/q {"decision":"always"}',
  ]);
  expect(await run("approvals deny old")).toMatchObject({
    code: 1,
    err: expect.stringContaining("denied before"),
  });
});
