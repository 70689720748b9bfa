import { describe, expect, test } from "vitest";
import { DaemonWorld, type Outcome } from "../support/daemon-world.ts";
import { call } from "../support/outside-world.ts";
import { verifies } from "../support/verifies.ts";

/** Whole turns under other settings: autonomy, expiry, the client's own tools, the limit of iterations. */

const weather = {
  type: "function",
  function: { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } },
};
const withWeather = { body: { tools: [weather] } };

/** Names of the tools that a request to the model offers. */
const offered = (body: Readonly<Record<string, unknown>> | undefined): readonly string[] =>
  ((body?.["tools"] ?? []) as { readonly function: { readonly name: string } }[]).map((t) => t.function.name);

/** The client's answer to the calls of an outcome, as the next request's messages. */
const answering = ({ calls }: Outcome, content: string) => ({
  body: {
    messages: calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content })),
  },
});

describe("autonomy", () => {
  verifies("W3", "full: nobody is asked, the effect happens once", async () => {
    await using world = await DaemonWorld.open({ config: { autonomy: "full" } });
    const answer = await world.stream("s", `${world.outside.append("done")}\n!say finished`);
    expect(answer).toMatchObject({ status: 200, text: "finished", approval: null });
    expect(world.outside.lines).toEqual(["done"]);
  });

  verifies("W3", "read_only: tools with effects are neither offered nor run", async () => {
    await using world = await DaemonWorld.open({ config: { autonomy: "read_only" } });
    const script = [world.outside.append("done"), world.outside.post("/done"), "!say finished"].join("\n");
    const answer = await world.say("s", script);
    expect(answer).toMatchObject({ status: 200, text: "finished", approval: null });
    const tools = offered(world.model.requests[0]?.body);
    expect(tools).toContain("read_file");
    for (const tool of ["terminal", "bash", "curl", "write_file", "delete_file"]) {
      expect(tools).not.toContain(tool);
    }
    expect([world.outside.lines, world.outside.visits]).toEqual([[], []]);
  });

  test("the workspace is the agent's own: writing there asks nobody, anywhere else is asked about", async () => {
    await using world = await DaemonWorld.open();
    const inside = `${call("write_file", { path: "notes.txt", content: "a" })}\n!say written`;
    expect(await world.say("s", inside)).toMatchObject({ text: "written", approval: null });
    const outside = call("write_file", { path: `${world.outside.folder}/notes.txt`, content: "a" });
    expect((await world.say("s", `${outside}\n!say no`)).approval).not.toBeNull();
  });
});

verifies("W2", "expired: no answer means no, and the turn ends with an answer of its own", async () => {
  await using world = await DaemonWorld.open({ config: { approvals: { expireSeconds: 1 } } });
  const question = await world.say("s", `${world.outside.append("late")}\n!say went on without`);
  const run = await world.reached(question.headers.get("x-run-id") ?? "", "completed");
  expect(run).toMatchObject({ output: "went on without" });
  expect(await world.get(`/v1/approvals/${question.approval ?? ""}`)).toMatchObject({ state: "expired" });
  expect((await world.decide(question.approval ?? "", "approve")).status).toBe(409);
  expect(world.outside.lines).toEqual([]);
  expect(await world.say("s", "!say works afterwards")).toMatchObject({ text: "works afterwards" });
});

describe("the client's tools beside the agent's", () => {
  const script = (world: DaemonWorld, name: string): string =>
    [world.outside.append(name), call("weather", { city: "Oslo" }), "!say it rains"].join("\n");

  verifies("W7", "server calls run first; the client gets its own calls only, and answers them", async () => {
    await using world = await DaemonWorld.open({ config: { autonomy: "full" } });
    for (const ask of ["say", "stream"] as const) {
      const first = await world[ask](ask, script(world, ask), withWeather);
      expect(first).toMatchObject({ status: 200, finish: "tool_calls", error: null });
      expect(first.calls.map((c) => c.function.name)).toEqual(["weather"]);
      expect(world.outside.lines.filter((line) => line === ask)).toEqual([ask]);
      const { body } = answering(first, "rain");
      const second = await world[ask](ask, "", { body: { ...withWeather.body, ...body } });
      expect(second).toMatchObject({ status: 200, finish: "stop", text: "it rains" });
      expect(world.outside.lines.filter((line) => line === ask)).toEqual([ask]);
    }
    expect(world.model.requests.map((request) => request.problem)).toEqual([null, null, null, null]);
  });

  test("under supervision the question comes first, then the client's calls", async () => {
    await using world = await DaemonWorld.open();
    const question = await world.say("s", script(world, "asked"), withWeather);
    expect(question).toMatchObject({ finish: "stop", calls: [] });
    const calls = await world.say("s", "/yes", withWeather);
    expect(calls).toMatchObject({ finish: "tool_calls" });
    expect(world.outside.lines).toEqual(["asked"]);
    const { body } = answering(calls, "rain");
    expect(await world.say("s", "", { body: { ...withWeather.body, ...body } })).toMatchObject({
      text: "it rains",
    });
    expect(world.outside.lines).toEqual(["asked"]);
  });

  test("a client that answers with another message leaves a history that models accept", async () => {
    await using world = await DaemonWorld.open();
    await world.say("s", `${call("weather", { city: "Oslo" })}\n!say it rains`, withWeather);
    expect(await world.say("s", "!say never mind")).toMatchObject({ text: "never mind" });
    expect(world.model.requests.map((request) => request.problem)).toEqual([null, null]);
  });
});

describe("the limit of iterations", () => {
  const round = (n: number): string => `!think ${n}\n${call("read_file", { path: `missing-${n}` })}`;
  const config = { loop: { maxToolIterations: 2 } };

  verifies(
    ["W8", "W4"],
    "the model is asked to conclude without tools, and the user has its words",
    async () => {
      await using world = await DaemonWorld.open({ config });
      const answer = await world.stream("s", [round(1), round(2), round(3), "!say concluded"].join("\n"));
      expect(answer).toMatchObject({ status: 200, finish: "stop", text: "concluded" });
      expect(world.model.requests.map(({ body }) => offered(body).length > 0)).toEqual([
        true,
        true,
        true,
        false,
      ]);
      expect(JSON.stringify(world.model.requests[3]?.body)).toContain("limit of tool calls");
    },
  );

  verifies("W8", "a model that will not stop calling tools leaves an answer all the same", async () => {
    await using world = await DaemonWorld.open({ config });
    const script = [round(1), round(2), round(3), round(4), round(5)].join("\n");
    for (const ask of ["say", "stream"] as const) {
      const answer = await world[ask](ask, script);
      expect(answer).toMatchObject({ status: 200, finish: "stop" });
      expect(answer.text).not.toBe("");
      expect(await world[ask](ask, "!say works afterwards")).toMatchObject({ text: "works afterwards" });
    }
    expect(world.model.requests.every(({ problem }) => problem === null)).toBe(true);
  });
});
