import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { DaemonWorld, type Json } from "../support/daemon-world.ts";
import { verifies } from "../support/verifies.ts";

/** What outsiders see of a daemon: files, routes, metrics, logs, and what goes to the model's API. */
const providerKey = "sk-proj-q8Zr4TnW2vLx9KcB5mYd7HsJ3fGp6RtE1uAa";
let world: DaemonWorld;
let logFile = "";
beforeAll(async () => {
  world = await DaemonWorld.open({
    env: { SCRIPTED_KEY: providerKey, OPENAI_API_KEY: "sk-proj-another-provider-that-is-not-named" },
    provider: { apiKey: { env: "SCRIPTED_KEY" } },
    config: { obs: { logLevel: "trace", logFile: null } },
  });
  await world.daemon.stop();
  logFile = join(world.home, "logs", "system.log");
  await world.start({ ...world.config(), obs: { logLevel: "trace", logFile } });
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const modeOf = (...path: readonly string[]): number => statSync(join(world.home, ...path)).mode & 0o777;
const newToken = async (name: string, ...scopes: readonly string[]): Promise<string> =>
  (
    await world.daemon.cli("token", "create", name, ...scopes.flatMap((scope) => ["--scope", scope]))
  ).out.trim();
const logLines = (): readonly Json[] =>
  readFileSync(logFile, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Json);

verifies(
  "W9",
  "the provider that the configuration names is the one that answers, with its key",
  async () => {
    expect(await world.say("named", "!say by name")).toMatchObject({ text: "by name" });
    const request = world.model.requests.at(-1);
    expect(request?.headers["authorization"]).toBe(`Bearer ${providerKey}`);
    expect(request?.body["model"]).toBe("scripted");
  },
);

describe("files", () => {
  verifies(["W60", "W62"], "token, database, log and control socket are their owner's alone", () => {
    expect(modeOf("token")).toBe(0o600);
    expect(modeOf("beamclaw.db")).toBe(0o600);
    expect(modeOf("logs", "system.log")).toBe(0o600);
    expect(modeOf("run", "beamclaw.sock")).toBe(0o600);
    for (const folder of ["run", "logs", "agents", "attachments"]) expect(modeOf(folder)).toBe(0o700);
    const open = readdirSync(world.home).filter((name) => /\.db|token/.test(name) && modeOf(name) !== 0o600);
    expect(open).toEqual([]);
  });
});

describe("the log", () => {
  const secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
  const phrase = "the purple elephant sings at midnight";

  verifies("W60", "holds no word of people, models or tools, and no secret, at any level", async () => {
    const words = `${phrase} password=${secret}`;
    await world.say("private", `!say ${words}`);
    await world.say("private", `${world.outside.append("purple")}\n!think ${words}\n!say done ${words}`);
    await world.say("private", "/yes");
    await world.say("private", `!status code=400 ${words}`);
    await world.daemon.request("/v1/models", { token: "beamclaw_wrong-token-purple" });
    const log = readFileSync(logFile, "utf8");
    expect(log).toContain('"turn_complete"');
    for (const text of ["purple elephant", secret, providerKey, world.daemon.token, "wrong-token"]) {
      expect(log).not.toContain(text);
    }
    expect(world.daemon.output.join("\n")).not.toContain("purple");
  });

  verifies(
    "W65",
    "says of each run what happened, under its run id and the trace id that went upstream",
    async () => {
      const question = await world.say("traced", `${world.outside.append("traced")}\n!say done`);
      await world.say("traced", "/yes");
      const run = question.headers.get("x-run-id") ?? "";
      // The log is written behind the run's back; its last line comes a moment after the answer.
      const lines = await vi.waitFor(() => {
        const written = logLines().filter((line) => line["run_id"] === run);
        expect(written.at(-1)).toMatchObject({ event: "turn_complete" });
        return written;
      });
      const traces = new Set(lines.flatMap((line) => line["trace_id"] ?? []));
      expect(traces.size).toBe(1);
      const [trace] = [...traces].map(String);
      expect(trace).toMatch(/^[0-9a-f]{32}$/);
      const parents = world.model.requests.slice(-2).map(({ headers }) => String(headers["traceparent"]));
      expect(parents).toEqual([
        expect.stringMatching(new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`)),
        expect.stringMatching(new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`)),
      ]);
      const fields: Readonly<Record<string, readonly string[]>> = {
        agent_start: ["session_id", "user_id"],
        llm_request: ["session_id", "model", "message_count"],
        llm_response: ["session_id", "duration_ms", "success"],
        approval_requested: ["session_id", "approval_id", "tool_name"],
        approval_resolved: ["session_id", "approval_id", "decision"],
        tool_call_start: ["session_id", "tool_name", "call_id"],
        tool_call_result: ["session_id", "tool_name", "duration_ms", "success"],
        turn_complete: ["session_id", "total_duration_ms", "outcome"],
      };
      for (const [event, names] of Object.entries(fields)) {
        const found = lines.find((line) => line["event"] === event);
        expect({ event, fields: Object.keys(found ?? {}) }).toEqual({
          event,
          fields: expect.arrayContaining([...names]),
        });
      }
    },
  );
});

describe("routes", () => {
  verifies("W23", "every route but health, readiness and the description wants a token", async () => {
    const { paths } = (await world.get("/openapi.json")) as {
      readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
    };
    const open: string[] = [];
    for (const [path, methods] of Object.entries(paths)) {
      for (const method of Object.keys(methods).filter((name) =>
        /^(get|post|delete|put|patch)$/.test(name),
      )) {
        const url = world.daemon.url + path.replaceAll(/\{\w+\}/g, "x");
        const { status } = await fetch(url, { method: method.toUpperCase() });
        if (status !== 401) open.push(`${method} ${path}`);
      }
    }
    expect(open.toSorted()).toEqual(["get /health", "get /openapi.json", "get /ready"]);
  });

  verifies("W23", "a token sees nothing of another's sessions, runs and questions", async () => {
    const [alice, bob] = [await newToken("alice", "chat"), await newToken("bob", "chat")];
    const question = await world.say("mine", `${world.outside.append("mine")}\n!say done`, { token: alice });
    const session = question.headers.get("x-session-id") ?? "";
    const run = question.headers.get("x-run-id") ?? "";
    const paths = [
      `/v1/sessions/${session}`,
      `/v1/sessions/${session}/messages`,
      `/v1/runs/${run}`,
      `/v1/runs/${run}/events`,
      `/v1/approvals/${question.approval ?? ""}`,
    ];
    const statuses = async (token: string): Promise<readonly number[]> =>
      Promise.all(
        paths.map(async (path) => {
          const response = await world.daemon.request(path, { token });
          await response.body?.cancel();
          return response.status;
        }),
      );
    expect(await statuses(alice)).toEqual(paths.map(() => 200));
    expect(await statuses(bob)).toEqual(paths.map(() => 404));
    const listed = await world.daemon.request("/v1/sessions", { token: bob });
    expect(await listed.json()).toMatchObject({ data: [] });
    expect(await world.say(session, "!say hello", { token: bob })).toMatchObject({ status: 404 });
    const own = await world.say("mine", "!say my own", { token: bob }); // the same name is another session
    expect(own.headers.get("x-session-id")).not.toBe(session);
    expect((await world.daemon.cli("token", "revoke", "bob")).code).toBe(0);
    expect(await statuses(bob)).toEqual(paths.map(() => 401));
  });

  verifies(["W23", "W65"], "metrics want a token with their scope, and count what happened", async () => {
    await world.say("open", `${world.outside.append("open")}\n!say waits for an answer`);
    expect((await fetch(`${world.daemon.url}/metrics`)).status).toBe(401);
    const talker = await newToken("talker", "chat");
    expect((await world.daemon.request("/metrics", { token: talker })).status).toBe(403);
    const scraper = await newToken("scraper", "metrics");
    expect((await world.daemon.request("/v1/models", { token: scraper })).status).toBe(403);
    const response = await world.daemon.request("/metrics", { token: scraper });
    expect(response.headers.get("content-type")).toContain("text/plain");
    const text = await response.text();
    const samples = [
      'beamclaw_runs_total{state="completed"}',
      'beamclaw_runs_total{state="failed"}',
      "beamclaw_run_seconds_bucket{",
      "beamclaw_model_call_seconds_count{",
      "beamclaw_model_first_token_seconds_count{",
      "beamclaw_tokens_total{",
      'beamclaw_tool_call_seconds_count{tool="terminal",outcome="ok"}',
      'beamclaw_approvals_total{decision="approve"}',
      "beamclaw_refused_total{",
      "beamclaw_http_request_seconds_count{",
      'beamclaw_runs_open{state="waiting"}',
      "beamclaw_queue_oldest_seconds ",
      "# TYPE beamclaw_event_loop_delay_seconds gauge",
      "beamclaw_resident_memory_bytes ",
    ];
    expect(samples.filter((sample) => !text.includes(`\n${sample}`))).toEqual([]);
    expect(text).not.toMatch(/purple|api:|session-/); // neither words nor people
  });

  test("a revoked or made-up token opens nothing", async () => {
    for (const token of ["", "beamclaw_", `beamclaw_${"A".repeat(43)}`, `${world.daemon.token}x`]) {
      expect((await world.daemon.request("/v1/models", { token })).status).toBe(401);
    }
  });
});

verifies(
  "W1",
  "secrets that are not set switch off their own features, and the status says which",
  async () => {
    const { code, out } = await world.daemon.cli("status", "--json");
    expect(code).toBe(0);
    const { provider, problems, off } = JSON.parse(out) as Record<string, Json>;
    expect(provider).toMatchObject({ name: "scripted" });
    expect(problems).toEqual([]);
    expect(off).toContainEqual(expect.stringMatching(/providers\.anthropic: ANTHROPIC_API_KEY is not set/));
    expect(off).toContainEqual(expect.stringMatching(/tools\.webSearch: BRAVE_API_KEY is not set/));
    expect((await world.get("/ready"))["status"] ?? "ready").toBeDefined();
    const search = '!call web_search {"query":"anything"}\n!say no search then';
    const question = await world.say("search", search);
    const answer = question.approval === null ? question : await world.say("search", "/yes");
    expect(answer).toMatchObject({ status: 200, text: "no search then" });
    expect((await world.history("search")).join("\n")).toContain("BRAVE_API_KEY");
  },
);
