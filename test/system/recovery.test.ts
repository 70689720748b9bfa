import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { contentOf, chunksOf } from "../gateway/sse-client.ts";
import { DaemonWorld, eventOf, type Json, type Outcome } from "../support/daemon-world.ts";
import { verifies } from "../support/verifies.ts";

/** The daemon dies without a word and starts again in the same home: what was accepted has one outcome. */
let world: DaemonWorld;
beforeAll(async () => {
  world = await DaemonWorld.open();
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const runOf = (outcome: Outcome): string => outcome.headers.get("x-run-id") ?? "";
const seqsOf = (events: readonly Json[]): readonly number[] =>
  events.flatMap(({ seq }) => (typeof seq === "number" ? [seq] : []));

/** Speaks in a session and lets go of the answer: the connection is going to break. */
function speak(...[session, text, request]: Parameters<DaemonWorld["post"]>): void {
  world.post(session, text, request).then(
    async (response) => response.text().catch(() => ""),
    () => "",
  );
}

/** The runs of a session, oldest first, once there are so many. */
async function runsOf(session: string, count: number): Promise<readonly Json[]> {
  const found = await vi.waitFor(
    async () => {
      const runs = await world.list(`/v1/runs?session_id=${session}`);
      expect(runs.length).toBe(count);
      return runs;
    },
    { timeout: 10_000 },
  );
  return found.toSorted((a, b) => (String(a["id"]) < String(b["id"]) ? -1 : 1));
}

const onlyRun = async (session: string): Promise<string> => String((await runsOf(session, 1))[0]?.["id"]);

describe("killed in the middle of an answer", () => {
  test("a conversation goes on: the answer is whole, and in the history once", async () => {
    const stream = await world.open("streamed", "!stall after=3 times=1\n!say the whole answer");
    const seen: string[] = [];
    while (contentOf(chunksOf(seen).chunks) === "") seen.push((await stream.next()) ?? "");
    const run = stream.headers.get("x-run-id") ?? "";
    await world.daemon.kill();
    const rest = await stream.all().catch(() => []);
    expect(chunksOf(rest).done).toBe(false); // nothing pretends that this was an answer
    await world.start();
    expect(await world.reached(run, "completed")).toMatchObject({ output: "the whole answer" });
    expect((await world.history("streamed")).slice(1)).toEqual(["assistant: the whole answer"]);
    expect(await world.say("streamed", "!say and on")).toMatchObject({ text: "and on" });
  });

  test("twice in a row", async () => {
    speak("twice", "!stall after=1 times=2\n!say at last");
    await world.model.nextRequest();
    const run = await onlyRun("twice");
    const again = world.model.nextRequest();
    await world.crash();
    await again;
    await world.crash();
    expect(await world.reached(run, "completed")).toMatchObject({ output: "at last" });
  });

  test("a stateless request whose client is gone ends as interrupted; with a key it goes on", async () => {
    const script = "!stall times=1\n!say found again";
    const keyed = { headers: { "idempotency-key": "stateless-key" } };
    const first = world.model.nextRequest();
    speak("none", `${script} (no key)`);
    await first;
    const second = world.model.nextRequest();
    speak("none", script, keyed);
    await second;
    await world.crash();
    const retried = await world.say("none", script, keyed);
    expect(retried).toMatchObject({ status: 200, text: "found again" });
    const runs = (await world.list("/v1/runs?state=failed")).map(({ error }) => error);
    expect(runs).toMatchObject([{ code: "interrupted" }]);
  });

  test("an Idempotency-Key finds the one answer before, during and after", async () => {
    const script = "!stall after=2 times=1\n!say once";
    const keyed = { headers: { "idempotency-key": "one-answer" }, body: { stream: true } };
    const asked = world.model.nextRequest();
    speak("keyed", script, keyed);
    await asked;
    await world.crash();
    const [during, beside] = await Promise.all([
      world.stream("keyed", script, keyed),
      world.stream("keyed", script, keyed),
    ]);
    const after = await world.stream("keyed", script, keyed);
    for (const outcome of [during, beside, after]) {
      expect(outcome).toMatchObject({ status: 200, text: "once", finish: "stop" });
      expect(runOf(outcome)).toBe(await onlyRun("keyed"));
    }
    expect(await world.say("keyed", "!say other", keyed)).toMatchObject({
      status: 409,
      error: "idempotency_conflict",
    });
  });
});

describe("killed in the middle of a tool's effect", () => {
  const approved = async (session: string, script: string): Promise<string> => {
    const question = await world.say(session, script);
    expect(question.approval).not.toBeNull();
    speak(session, "/yes");
    return runOf(question);
  };

  verifies("W27", "a command is not run again, its process is gone, and the model is told", async () => {
    const run = await approved("command", `${world.outside.appendAndStay("once")}\n!say concluded`);
    await world.outside.written("once");
    expect(world.outside.staying).toBe(true);
    await world.crash();
    expect(await world.reached(run, "completed")).toMatchObject({ output: "concluded" });
    expect(world.outside.lines.filter((line) => line === "once")).toHaveLength(1);
    expect(world.outside.staying).toBe(false);
    expect((await world.history("command"))[2]).toMatch(/^tool: .*may or may not/i);
  });

  test("a request is not sent again", async () => {
    const arrived = world.outside.visited("/hold-once");
    const run = await approved("request", `${world.outside.post("/hold-once")}\n!say concluded`);
    await arrived;
    await world.crash();
    expect(await world.reached(run, "completed")).toMatchObject({ output: "concluded" });
    expect(world.outside.visits.filter((visit) => visit === "POST /hold-once")).toHaveLength(1);
    expect(await world.say("request", "!say works on")).toMatchObject({ text: "works on" });
  });
});

describe("killed while a question is open", () => {
  for (const how of ["in the conversation", "over HTTP"] as const) {
    test(`it can still be answered ${how}`, async () => {
      const line = how.replaceAll(" ", "-");
      const question = await world.say(line, `${world.outside.append(line)}\n!say answered`);
      await world.crash();
      const pending = await world.list(`/v1/approvals?state=pending&session_id=${line}`);
      expect(pending).toMatchObject([{ id: question.approval }]);
      expect(await world.get(`/v1/runs/${runOf(question)}`)).toMatchObject({ state: "waiting" });
      if (how === "over HTTP")
        expect((await world.decide(question.approval ?? "", "approve")).status).toBe(200);
      else expect(await world.say(line, "/yes")).toMatchObject({ text: "answered" });
      expect(await world.reached(runOf(question), "completed")).toMatchObject({ output: "answered" });
      expect(world.outside.lines.filter((done) => done === line)).toHaveLength(1);
      expect((await world.decide(question.approval ?? "", "deny")).status).toBe(409);
    });
  }

  test("a question whose time ran out meanwhile counts as no", async () => {
    await using brief = await DaemonWorld.open({ config: { approvals: { expireSeconds: 1 } } });
    const question = await brief.say("s", `${brief.outside.append("late")}\n!say went on without`);
    await brief.crash();
    expect(await brief.reached(runOf(question), "completed")).toMatchObject({ output: "went on without" });
    expect(brief.outside.lines).toEqual([]);
  });
});

verifies(["W13", "W18"], "killed with runs queued: all are answered, in their order, once", async () => {
  const session = "queued";
  const asked = world.model.nextRequest();
  speak(session, "!stall times=1\n!say answer 0");
  await asked;
  for (const n of [1, 2, 3]) {
    speak(session, `!say answer ${n}`);
    await runsOf(session, n + 1);
  }
  await world.crash();
  const runs = await runsOf(session, 4);
  for (const { id } of runs) await world.reached(String(id), "completed");
  const history = await world.history(session);
  expect(history.filter((entry) => entry.startsWith("assistant"))).toEqual(
    [0, 1, 2, 3].map((n) => `assistant: answer ${n}`),
  );
  expect(history.map((entry) => entry.split(":", 1)[0])).toEqual(runs.flatMap(() => ["user", "assistant"]));
});

test("a reader of the events that comes back sees every event once, in order", async () => {
  const text = [world.outside.append("seen"), "!stall after=2 times=1", "!say the end"].join("\n");
  const question = await world.say("events", text);
  const run = runOf(question);
  const reader = await world.watch(run);
  const asked = world.model.nextRequest();
  speak("events", "/yes");
  await asked;
  const before: Json[] = [];
  while (!before.some(({ type }) => type === "chunk")) before.push(...eventOf((await reader.next()) ?? ""));
  const numbered = seqsOf(before);
  await world.crash();
  const after = seqsOf(await world.events(run, numbered.at(-1)));
  const seen = [...numbered, ...after];
  expect(seen).toEqual(seen.map((_, index) => index + 1));
  expect(seqsOf(await world.events(run))).toEqual(seen);
  expect(world.outside.lines.filter((line) => line === "seen")).toHaveLength(1);
});

test("what was sent to the model's API stayed acceptable to it", () => {
  expect(world.model.requests.filter(({ problem }) => problem !== null)).toEqual([]);
});
