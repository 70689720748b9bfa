import { afterAll, beforeAll, expect, test } from "vitest";
import { DaemonWorld, type Outcome } from "../support/daemon-world.ts";
import { verifies } from "../support/verifies.ts";

/** A tool with effects through a person's decision, in each way; effects are counted outside the daemon. */
let world: DaemonWorld;
beforeAll(async () => {
  world = await DaemonWorld.open();
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const effectsOf = (name: string): number => world.outside.lines.filter((line) => line === name).length;
const visitsOf = (path: string): number =>
  world.outside.visits.filter((visit) => visit === `POST ${path}`).length;

/** Asks for an effect in a session of that name; checks that nothing happens before somebody decides. */
async function asked(name: string): Promise<Outcome> {
  const question = await world.say(name, `${world.outside.append(name)}\n!say finished ${name}`);
  expect(question).toMatchObject({ status: 200, finish: "stop", error: null });
  expect(question.approval).toBe(question.headers.get("x-approval-id"));
  expect(question.text).toContain("terminal");
  expect(question.text).toContain(`echo ${name}`); // the person sees what would run
  expect(question.text).toMatch(/\/yes or \/no/);
  expect(effectsOf(name)).toBe(0);
  return question;
}

verifies("W2", "yes: the call runs once, and the answer comes with the request that said yes", async () => {
  const question = await asked("yes");
  const answer = await world.say("yes", "/yes");
  expect(answer).toMatchObject({ status: 200, finish: "stop", text: "finished yes", approval: null });
  expect(answer.headers.get("x-run-id")).toBe(question.headers.get("x-run-id"));
  expect(effectsOf("yes")).toBe(1);
  expect(await world.history("yes")).toEqual([
    expect.stringContaining("user: !call terminal"),
    "assistant: null",
    expect.stringContaining("tool: Exit code 0."),
    "assistant: finished yes",
  ]);
});

verifies("W2", "yes, streamed", async () => {
  const session = "yes-streamed";
  const question = await world.stream(session, `${world.outside.append(session)}\n!say finished`);
  expect(question).toMatchObject({ status: 200, finish: "stop", error: null });
  expect(question.approval).not.toBeNull();
  expect(question.text).toContain(`echo ${session}`);
  const answer = await world.stream(session, "/yes");
  expect(answer).toMatchObject({ status: 200, finish: "stop", text: "finished" });
  expect(effectsOf(session)).toBe(1);
});

verifies("W2", "no: the call does not run, the model is told, the turn ends with an answer", async () => {
  await asked("no");
  const answer = await world.say("no", "/no");
  expect(answer).toMatchObject({ status: 200, finish: "stop", text: "finished no" });
  expect(effectsOf("no")).toBe(0);
  expect((await world.history("no"))[2]).toMatch(/^tool: .*[Dd]enied/);
  expect(await world.say("no", "!say works afterwards")).toMatchObject({ text: "works afterwards" });
});

test("always: the same pattern is not asked again in this session, another one is", async () => {
  const session = "always";
  const question = await world.say(session, `${world.outside.post("/one")}\n!say first`);
  expect(question.text).toContain(`/always allows \`POST ${world.outside.origin}\``);
  expect(await world.say(session, "/always")).toMatchObject({ text: "first" });
  const again = await world.say(session, `${world.outside.post("/two")}\n!say second`);
  expect(again).toMatchObject({ text: "second", approval: null });
  expect([visitsOf("/one"), visitsOf("/two")]).toEqual([1, 1]);
  const shell = await world.say(session, `${world.outside.append(session)}\n!say never`);
  expect(shell.approval).not.toBeNull();
  const elsewhere = await world.say("always-elsewhere", `${world.outside.post("/three")}\n!say third`);
  expect(elsewhere.approval).not.toBeNull();
  expect([effectsOf(session), visitsOf("/three")]).toEqual([0, 0]);
});

test("over HTTP: whoever follows the run sees it end; a second answer is refused", async () => {
  const question = await asked("http");
  const id = question.approval ?? "";
  const pending = await world.list("/v1/approvals?state=pending&session_id=http");
  expect(pending).toMatchObject([{ id, tool: "terminal", state: "pending" }]);
  const answers = await Promise.all([world.decide(id, "approve"), world.decide(id, "approve")]);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 409]));
  const run = await world.reached(question.headers.get("x-run-id") ?? "", "completed");
  expect(run).toMatchObject({ output: "finished http" });
  expect(effectsOf("http")).toBe(1);
  expect((await world.decide(id, "deny")).status).toBe(409);
  expect(await world.get(`/v1/approvals/${id}`)).toMatchObject({ state: "approved" });
  expect(effectsOf("http")).toBe(1);
});

test("superseded: another message withdraws the question and is answered", async () => {
  const question = await asked("superseded");
  const answer = await world.say("superseded", "!say something else");
  expect(answer).toMatchObject({ status: 200, text: "something else" });
  const run = await world.get(`/v1/runs/${question.headers.get("x-run-id") ?? ""}`);
  expect(run).toMatchObject({ state: "cancelled" });
  expect((await world.decide(question.approval ?? "", "approve")).status).toBe(409);
  expect(await world.say("superseded", "/yes")).toMatchObject({ status: 200 }); // ordinary text now
  expect(effectsOf("superseded")).toBe(0);
});

test("two calls of one answer are asked about one after the other, in their order", async () => {
  const session = "in-order";
  const script = [world.outside.append("first"), world.outside.append("second"), "!say both"].join("\n");
  const first = await world.say(session, script);
  expect(first.text).toContain("echo first");
  const second = await world.say(session, "/yes");
  expect(second.text).toContain("echo second");
  expect(second.approval).not.toBe(first.approval);
  expect([effectsOf("first"), effectsOf("second")]).toEqual([1, 0]);
  expect(await world.say(session, "/no")).toMatchObject({ text: "both" });
  expect([effectsOf("first"), effectsOf("second")]).toEqual([1, 0]);
});

verifies("W2", "a token without the scope can ask, but not decide", async () => {
  const { out } = await world.daemon.cli("token", "create", "talker", "--scope", "chat");
  const token = out.trim();
  const request = { token };
  const question = await world.say("talk", `${world.outside.append("talk")}\n!say done`, request);
  expect(question.text).toContain("with a token that has the scope approvals");
  const refused = await world.daemon.request(`/v1/approvals/${question.approval ?? ""}`, {
    method: "POST",
    token,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ decision: "approve" }),
  });
  expect(refused.status).toBe(403);
  await world.say("talk", "/yes", request); // ordinary text, which withdraws the question
  expect(effectsOf("talk")).toBe(0);
});

verifies("W2", "a stateless request cannot be asked, so it runs nothing with effects", async () => {
  const answer = await world.say("none", `${world.outside.append("stateless")}\n!say told`);
  expect(answer).toMatchObject({ status: 200, approval: null });
  expect(effectsOf("stateless")).toBe(0);
});
