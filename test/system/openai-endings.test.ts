import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { DaemonWorld } from "../support/daemon-world.ts";
import { all, openaiClient, refusedUpstream, saying, SchemaJudge } from "../support/openai-client.ts";
import { verifies } from "../support/verifies.ts";

/** How requests of the official client end other than by an answer: errors, abort, repetition. */
const judge = new SchemaJudge();
let world: DaemonWorld;
let client: OpenAI;
beforeAll(async () => {
  world = await DaemonWorld.open({
    provider: { retrySeconds: 1 },
    config: { gateway: { bodyLimitBytes: 65_536 } },
  });
  client = openaiClient(world, judge, null);
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});
/** A success keeps the provider's circuit closed, however many failures these tests ask for. */
beforeEach(async () => {
  await client.chat.completions.create(saying("all is well"));
});

async function failureOf(promise: Promise<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> {
  const error: unknown = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (error instanceof OpenAI.APIError) return error;
  throw new Error("the client reports no error of the API", { cause: error });
}

describe("what the caller did wrong", () => {
  verifies("W23", "no or a wrong token: 401", async () => {
    const wrong = openaiClient(world, judge, null, { apiKey: "bc_wrong" });
    const error = await failureOf(wrong.chat.completions.create(saying("hello")));
    expect(error).toBeInstanceOf(OpenAI.AuthenticationError);
    expect(error).toMatchObject({ status: 401, code: "unauthorized", type: "authentication_error" });
    expect(error.requestID).toBeTruthy();
  });

  test("an agent that does not exist: 404", async () => {
    const error = await failureOf(
      client.chat.completions.create({ ...saying("hello"), model: "beamclaw/nobody" }),
    );
    expect(error).toBeInstanceOf(OpenAI.NotFoundError);
    expect(error).toMatchObject({ status: 404, code: "agent_not_found", param: "model" });
  });

  test("a value that is out of range: 400 that names it, streamed or not", async () => {
    for (const stream of [false, true]) {
      const error = await failureOf(
        client.chat.completions.create({ ...saying("hello"), temperature: 9, stream }),
      );
      expect(error).toBeInstanceOf(OpenAI.BadRequestError);
      expect(error).toMatchObject({ code: "invalid_request", param: "temperature" });
    }
  });

  test("a message without a place: 400 that names it", async () => {
    const messages = [
      {
        role: "user" as const,
        content: [{ type: "input_audio" as const, input_audio: { data: "", format: "wav" as const } }],
      },
    ];
    const error = await failureOf(client.chat.completions.create({ model: "beamclaw", messages }));
    expect(error).toMatchObject({ status: 400 });
    expect(error.param).toMatch(/^messages\[0\]\.content/);
  });

  test("a body beyond the limit: 413", async () => {
    const error = await failureOf(client.chat.completions.create(saying("x".repeat(70_000))));
    expect(error).toMatchObject({ status: 413, code: "body_too_large" });
  });

  test("a model that does not exist and a route that does not", async () => {
    expect(await failureOf(client.models.retrieve("gpt-nothing"))).toMatchObject({ status: 404 });
    const input = { model: "beamclaw", input: "hello" };
    expect(await failureOf(client.embeddings.create(input))).toMatchObject({
      status: 404,
      code: "not_found",
    });
  });
});

verifies("W58", "beyond the rate limit: 429 with Retry-After", async () => {
  const rateLimit = { requests: 2, windowSeconds: 60, limitLocal: true };
  await using limited = await DaemonWorld.open({ config: { gateway: { rateLimit } } });
  const hasty = openaiClient(limited, judge, null);
  await hasty.chat.completions.create(saying("one"));
  await hasty.chat.completions.create(saying("two"));
  const error = await failureOf(hasty.chat.completions.create(saying("three")));
  expect(error).toBeInstanceOf(OpenAI.RateLimitError);
  expect(error).toMatchObject({ status: 429, code: "rate_limited", type: "rate_limit_error" });
  const seconds = Number(error.headers?.get("retry-after"));
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(60);
});

const upstreamFaults = [
  { script: "!status code=429 retry-after=7 slow down", status: 503, code: "provider_rate_limited" },
  { script: "!status code=500", status: 503, code: "provider_unavailable" },
  { script: "!status code=401 no such key", status: 502, code: "provider_auth" },
  { script: "!status code=400 strange field", status: 502, code: "provider_rejected" },
  { script: "!html", status: 502, code: "provider_bad_answer" },
] as const;
describe("what the model's side did wrong", () => {
  test.each(upstreamFaults)("$script: $status", async ({ script, status, code }) => {
    for (const stream of [false, true]) {
      const error = await failureOf(client.chat.completions.create({ ...saying(script), stream }));
      expect(error).toMatchObject({ status, code, type: "server_error" });
      if (status === 503) expect(Number(error.headers?.get("retry-after"))).toBeGreaterThan(0);
    }
  });

  verifies("W63", "the model's Retry-After reaches the client", async () => {
    const error = await failureOf(
      client.chat.completions.create(saying("!status code=429 retry-after=7 slow down")),
    );
    expect(error.headers?.get("retry-after")).toBe("7");
  });

  test("a break in mid-stream: the text so far, then an error and no end", async () => {
    const said: string[] = [];
    const broken = async (): Promise<void> => {
      const request = { ...saying("!reset after=3"), stream: true } as const;
      for await (const chunk of await client.chat.completions.create(request)) {
        said.push(chunk.choices[0]?.delta.content ?? "");
      }
    };
    expect(await failureOf(broken())).toMatchObject({ code: "provider_interrupted" });
    expect(said.join("")).toContain("one");
  });
});

describe("abort", () => {
  /** Opens a stream and aborts it once text has come; the id of its run. */
  async function abortMidStream(of: OpenAI, script: string): Promise<string> {
    const request = { ...saying(script), stream: true } as const;
    const { data, response } = await of.chat.completions.create(request).withResponse();
    for await (const chunk of data) {
      if (chunk.choices[0]?.delta.content) data.controller.abort();
    }
    return response.headers.get("x-run-id") ?? "";
  }

  verifies("W5", "a stateless stream that is aborted ends its run and the model's", async () => {
    const upstream = world.model.nextRequest();
    const run = await abortMidStream(client, "!stall after=2");
    expect(await (await upstream).closed).toBe("aborted");
    expect(await world.reached(run, "cancelled")).toMatchObject({ state: "cancelled" });
  });

  test("a request that is aborted before its answer ends its run and the model's", async () => {
    const upstream = world.model.nextRequest();
    const controller = new AbortController();
    const asked = client.chat.completions.create(saying("!stall"), { signal: controller.signal });
    const { closed } = await upstream;
    controller.abort();
    await expect(asked).rejects.toBeInstanceOf(OpenAI.APIUserAbortError);
    expect(await closed).toBe("aborted");
  });

  test("a session's run goes on without its reader, and its answer is in the history", async () => {
    const named = openaiClient(world, judge, "aborted");
    const run = await abortMidStream(named, "!say gap=10 this is said to the end");
    const ended = await world.reached(run, "completed");
    expect(await world.history(String(ended["session_id"]))).toEqual([
      "user: !say gap=10 this is said to the end",
      "assistant: this is said to the end",
    ]);
  });
});

describe("idempotency", () => {
  const keyed = (key: string) => ({ headers: { "Idempotency-Key": key } });
  const asked = (text: string): number =>
    world.model.requests.filter(({ body }) => JSON.stringify(body).includes(text)).length;

  test("the same key and body twice: one call to the model, one answer", async () => {
    const named = openaiClient(world, judge, "keyed");
    const request = saying("charge the card once");
    const first = await named.chat.completions.create(request, keyed("k-1"));
    const second = await named.chat.completions.create(request, keyed("k-1"));
    expect(second).toEqual(first);
    expect(asked("charge the card once")).toBe(1);
  });

  test("at the same time, too; and a stream is replayed as a stream", async () => {
    const request = { ...saying("!say gap=5 only once in parallel"), stream: true } as const;
    const both = await Promise.all(
      [1, 2].map(async () => all(await client.chat.completions.create(request, keyed("k-2")))),
    );
    both.push(await all(await client.chat.completions.create(request, keyed("k-2"))));
    const texts = both.map((chunks) => chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""));
    expect(texts).toEqual(Array.from({ length: 3 }, () => "only once in parallel"));
    expect(new Set(both.flat().map(({ id }) => id)).size).toBe(1);
    expect(asked("only once in parallel")).toBe(1);
  });

  test("the same key with another body: 409", async () => {
    await client.chat.completions.create(saying("first body"), keyed("k-3"));
    const error = await failureOf(client.chat.completions.create(saying("second body"), keyed("k-3")));
    expect(error).toBeInstanceOf(OpenAI.ConflictError);
    expect(error).toMatchObject({ code: "idempotency_conflict" });
  });
});

test("what was sent to the model's API was accepted by it", () => {
  expect(refusedUpstream(world)).toEqual([]);
});

test.skipIf(!judge.present)("every answer, chunk and error fits the published schema", async () => {
  const { judged, complaints } = await judge.verdict();
  expect(complaints).toEqual([]);
  expect(judged).toBeGreaterThan(50);
});
