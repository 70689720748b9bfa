import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DaemonWorld } from "../support/daemon-world.ts";
import { verifies } from "../support/verifies.ts";

/** What can go wrong on the model's side: each time one visible outcome, and a session that works on. */
let world: DaemonWorld;
beforeAll(async () => {
  world = await DaemonWorld.open({
    config: { autonomy: "full" },
    provider: { retries: 0, timeouts: { firstByteMs: 300, idleMs: 300 } },
  });
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

interface Fault {
  readonly script: string;
  readonly status: number;
  readonly error: string;
}

/** Faults before the first word: a stream has the status as well. */
const early: Readonly<Record<string, Fault>> = {
  "a limit that lasts": {
    script: "!status code=429 retry-after=120 slow down",
    status: 503,
    error: "provider_rate_limited",
  },
  "a server error": { script: "!status code=500 oops", status: 503, error: "provider_unavailable" },
  "an overload": { script: "!status code=529 busy", status: 503, error: "provider_unavailable" },
  "a refused key": { script: "!status code=401 bad key", status: 502, error: "provider_auth" },
  "a refused request": { script: "!status code=400 no", status: 502, error: "provider_rejected" },
  "a reset before the first byte": { script: "!reset", status: 503, error: "provider_unavailable" },
  "silence from the start": { script: "!stall", status: 504, error: "provider_timeout" },
  "an event that is no JSON": { script: "!malformed", status: 502, error: "provider_bad_answer" },
  "a page instead of JSON": { script: "!html", status: 502, error: "provider_bad_answer" },
  "choices that never come": { script: "!empty", status: 502, error: "provider_bad_answer" },
  "an error inside a success": { script: "!error broken", status: 503, error: "provider_unavailable" },
};

/** Faults after some words: a stream has begun, its error is a frame. */
const late: Readonly<Record<string, Fault>> = {
  "a reset in the middle": { script: "!reset after=3", status: 502, error: "provider_interrupted" },
  "silence in the middle": { script: "!stall after=3", status: 504, error: "provider_timeout" },
  "a broken event in the middle": { script: "!malformed after=3", status: 502, error: "provider_bad_answer" },
};

const slug = (name: string): string => name.replaceAll(" ", "-");

/** Exactly one end of the run is on record, and the conversation goes on. */
async function settledAs(session: string, run: string, error: string): Promise<void> {
  expect(await world.get(`/v1/runs/${run}`)).toMatchObject({ state: "failed", error: { code: error } });
  const ends = (await world.events(run)).filter(({ type }) =>
    /^run\.(completed|failed|cancelled|expired)$/.test(String(type)),
  );
  expect(ends).toMatchObject([{ type: "run.failed" }]);
  expect(await world.say(session, "!say still here")).toMatchObject({ status: 200, text: "still here" });
}

describe("one JSON answer with its status", () => {
  for (const [name, { script, status, error }] of Object.entries({ ...early, ...late })) {
    verifies("W63", name, async () => {
      const session = `json-${slug(name)}`;
      const answer = await world.say(session, script);
      expect(answer).toMatchObject({ status, error });
      const retryAfter = Number(answer.headers.get("retry-after") ?? "0");
      expect(retryAfter > 0).toBe(status === 503);
      await settledAs(session, answer.headers.get("x-run-id") ?? "", error);
    });
  }
});

describe("streamed: a status before the first word, one error frame after it", () => {
  for (const [name, { script, status, error }] of Object.entries(early)) {
    verifies("W63", name, async () => {
      const session = `stream-${slug(name)}`;
      const answer = await world.stream(session, script);
      expect(answer).toMatchObject({ status, error, text: "" });
      await settledAs(session, answer.headers.get("x-run-id") ?? "", error);
    });
  }
  for (const [name, { script, error }] of Object.entries(late)) {
    verifies(["W5", "W63"], name, async () => {
      const session = `stream-${slug(name)}`;
      const answer = await world.stream(session, script);
      expect(answer).toMatchObject({ status: 200, error });
      expect(answer.text).toMatch(/^one/);
      await settledAs(session, answer.headers.get("x-run-id") ?? "", error);
      expect((await world.history(session))[1]).toBe(`assistant: ${answer.text}`); // what was said is kept
    });
  }
});

verifies("W63", "a failure before the first word is tried again; a limit's Retry-After is kept", async () => {
  await using patient = await DaemonWorld.open({ provider: { retries: 1, timeouts: { firstByteMs: 300 } } });
  const limit = "!status code=429 retry-after=1 times=1 wait";
  const faults = [
    limit,
    "!reset times=1",
    "!status code=500 times=1 oops",
    "!stall times=1",
    "!html times=1",
  ];
  const answers = await Promise.all(
    faults.map((fault, n) => patient.say(`again-${n}`, `${fault}\n!say answer ${n}`)),
  );
  expect(answers.map(({ status, text }) => `${status} ${text}`)).toEqual(
    faults.map((_, n) => `200 answer ${n}`),
  );
  expect(patient.model.requests).toHaveLength(2 * faults.length);
});

test("a failure after a tool's effect: the effect happened once, and a retry of the request finds the outcome", async () => {
  const script = `${world.outside.append("before-failure")}\n!status code=500 oops`;
  const keyed = { headers: { "idempotency-key": "before-failure" } };
  const first = await world.say("effect", script, keyed);
  expect(first).toMatchObject({ status: 503, error: "provider_unavailable" });
  const again = await world.say("effect", script, keyed);
  expect(again).toMatchObject({ status: 503, error: "provider_unavailable" });
  expect(again.headers.get("x-run-id")).toBe(first.headers.get("x-run-id"));
  expect(world.outside.lines).toEqual(["before-failure"]);
  expect(await world.say("effect", "!say works on")).toMatchObject({ text: "works on" });
});

test("an answer without a word is said to be one: silence is no outcome", async () => {
  for (const ask of ["say", "stream"] as const) {
    const answer = await world[ask]("silent", "!nothing");
    expect(answer).toMatchObject({ status: 200, finish: "stop", text: expect.stringContaining("empty") });
  }
});

test("what goes to the model's API stays acceptable to it, whatever went wrong before", () => {
  const problems = world.model.requests.map(({ problem }) => problem).filter((problem) => problem !== null);
  expect(problems).toEqual([]);
});

verifies("W63", "nobody listens at the provider's address: said so at once, and again", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  await using lonely = await DaemonWorld.open({
    provider: { baseUrl: `http://127.0.0.1:${port}/v1`, retries: 0 },
  });
  for (const ask of ["say", "stream"] as const) {
    const answer = await lonely[ask](ask, "hello");
    expect(answer).toMatchObject({ status: 503, error: "provider_unavailable" });
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
  }
});
