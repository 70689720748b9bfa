import { connect } from "node:net";
import { once } from "node:events";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bearer, chat, type Harness, openGateway } from "./harness.ts";
import { chunkOf, chunksOf, contentOf, framesOf, SseClient } from "./sse-client.ts";

const streamed = (text: string, body: object = {}, headers: Record<string, string> = {}) =>
  chat(text, { stream: true, ...body }, headers);

/** A streamed chat over a real socket. */
async function open(gateway: Harness, url: string, body: object = {}, signal?: AbortSignal) {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: bearer(gateway.owner),
    body: JSON.stringify(streamed("hi", body).payload),
    ...(signal && { signal }),
  });
  return new SseClient(response);
}

describe("the frames of a stream", () => {
  test("start with the role, end with the reason and [DONE], and share id, time and model", async () => {
    const gateway = await openGateway();
    const response = await gateway.inject(streamed("hi"));
    expect(response.headers).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-run-id": expect.any(String),
      "x-session-id": expect.any(String),
      "x-request-id": expect.any(String),
    });
    const { chunks, done } = chunksOf(framesOf(response.body));
    expect(done).toBe(true);
    expect(chunks[0]?.choices[0]?.delta).toMatchObject({ role: "assistant" });
    expect(chunks.at(-1)?.choices[0]).toMatchObject({ delta: {}, finish_reason: "stop" });
    expect(contentOf(chunks)).toBe("Hello");
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    expect(chunks.every((chunk) => !("usage" in chunk))).toBe(true);
  });

  test("include_usage adds one chunk without choices, and null to all others", async () => {
    const gateway = await openGateway();
    const response = await gateway.inject(streamed("hi", { stream_options: { include_usage: true } }));
    const { chunks } = chunksOf(framesOf(response.body));
    const last = chunks.at(-1);
    expect(last).toMatchObject({ choices: [], usage: { prompt_tokens: 7, total_tokens: 10 } });
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
  });

  test("texts of several model calls are parted by a blank line, empty ones leave none", async () => {
    const gateway = await openGateway();
    gateway.conversations.script = (run) => {
      run.begin(0).say("First.").begin(1).begin(2);
      run.answer("Last.");
    };
    const { chunks } = chunksOf(framesOf((await gateway.inject(streamed("hi"))).body));
    expect(contentOf(chunks)).toBe("First.\n\nLast.");
  });

  test("client calls come as tool call deltas, one each", async () => {
    const gateway = await openGateway();
    const clientCalls = [
      { id: "a", name: "f", arguments: "{}" },
      { id: "b", name: "g", arguments: '{"x":"é"}' },
    ];
    gateway.conversations.script = (run) => run.answer("", { finishReason: "tool_calls", clientCalls });
    const { chunks } = chunksOf(framesOf((await gateway.inject(streamed("hi"))).body));
    const deltas = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []);
    expect(deltas).toEqual([
      { index: 0, id: "a", type: "function", function: { name: "f", arguments: "{}" } },
      { index: 1, id: "b", type: "function", function: { name: "g", arguments: '{"x":"é"}' } },
    ]);
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe("tool_calls");
  });

  test("a question is the answer's last words, with the approval's id", async () => {
    const gateway = await openGateway();
    gateway.conversations.script = (run) => void run.begin(0).say("I will list them.").ask();
    const response = await gateway.inject(streamed("hi", {}, { "x-session-id": "s" }));
    const { chunks, done } = chunksOf(framesOf(response.body));
    const [approval] = gateway.store.savedApprovals.values();
    expect(contentOf(chunks)).toMatch(/^I will list them\.\n\nApproval needed for bash/);
    expect(chunks.at(-1)).toMatchObject({ approval_id: approval?.id });
    expect(response.headers["x-approval-id"]).toBe(approval?.id);
    expect(done).toBe(true);
  });

  test("an answer that was never said piece by piece is sent whole", async () => {
    const gateway = await openGateway();
    gateway.conversations.script = (run) =>
      run.begin(0).say("Looking.").complete("I stopped: the same call again.");
    const { chunks } = chunksOf(framesOf((await gateway.inject(streamed("hi"))).body));
    expect(contentOf(chunks)).toBe("Looking.\n\nI stopped: the same call again.");
  });

  test("a run that is replayed is one snapshot and its end", async () => {
    const gateway = await openGateway();
    const key = { "idempotency-key": "k" };
    const first = await gateway.inject(streamed("hi", {}, key));
    const again = await gateway.inject(streamed("hi", {}, key));
    expect(again.headers["x-run-id"]).toBe(first.headers["x-run-id"]);
    const { chunks, done } = chunksOf(framesOf(again.body));
    expect(contentOf(chunks)).toBe("Hello");
    expect(chunks).toHaveLength(3);
    expect(done).toBe(true);
  });

  test("whatever the pieces, the text arrives whole and in order", async () => {
    const gateway = await openGateway();
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.string({ unit: "binary" }), { maxLength: 5 }), { minLength: 1, maxLength: 4 }),
        fc.infiniteStream(fc.boolean()),
        async (calls, pauses) => {
          const texts = calls.map((pieces) => pieces.join(""));
          const next = gateway.conversations.next();
          const answer = gateway.inject(streamed("hi"));
          const run = await next;
          for (const [step, pieces] of calls.entries()) {
            run.begin(step);
            for (const half of pieces.join("").split("")) {
              run.say(half);
              if (pauses.next().value) await Promise.resolve();
            }
          }
          run.complete(texts.at(-1) ?? "");
          const { chunks, done } = chunksOf(framesOf((await answer).body));
          expect(contentOf(chunks)).toBe(texts.filter((text) => text !== "").join("\n\n"));
          expect(done).toBe(true);
        },
      ),
      { numRuns: 30 },
    );
  });
});

describe("the status line", () => {
  test("goes out with the first delta, in one write with it", async () => {
    const gateway = await openGateway();
    const url = new URL(await gateway.listen());
    const next = gateway.conversations.next();
    const socket = connect(Number(url.port), url.hostname);
    const body = JSON.stringify(streamed("hi").payload);
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: ${url.host}\r\nauthorization: Bearer ${gateway.owner}\r\n` +
        `content-length: ${body.length}\r\n\r\n${body}`,
    );
    const run = await next;
    run.begin(0).say("first words");
    const [packet] = (await once(socket, "data")) as [Buffer];
    expect(packet.toString()).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*"role":"assistant"[\s\S]*first words/);
    socket.destroy();
  });

  test("goes out after five silent seconds; then a ping every fifteen", async () => {
    const gateway = await openGateway();
    const next = gateway.conversations.next();
    const opening = open(gateway, await gateway.listen());
    const run = await next;
    await gateway.clock.advance(5_000);
    const client = await opening;
    expect(chunkOf(await client.next()).choices[0]?.delta.role).toBe("assistant");
    await gateway.clock.advance(15_000);
    expect(await client.next()).toBe(": ping");
    await gateway.clock.advance(15_000);
    expect(await client.next()).toBe(": ping");
    run.answer("late");
    expect(contentOf(chunksOf(await client.all()).chunks)).toBe("late");
  });

  test("is an error's where the run fails before it has said anything", async () => {
    const gateway = await openGateway();
    gateway.conversations.script = (run) =>
      run.fail({ code: "provider_rate_limited", message: "slow down", retryAfterSeconds: 30 });
    const response = await gateway.inject(streamed("hi"));
    expect(response.statusCode).toBe(503);
    expect(response.headers["retry-after"]).toBe("30");
    expect(response.headers["content-type"]).toContain("application/json");
    expect(response.json().error).toMatchObject({ code: "provider_rate_limited", type: "server_error" });
  });

  test("a failure after it is one error frame, and no end mark", async () => {
    const gateway = await openGateway();
    const next = gateway.conversations.next();
    const opening = open(gateway, await gateway.listen());
    const run = await next;
    run.begin(0).say("Half an ans");
    const client = await opening;
    expect(contentOf([chunkOf(await client.next()), chunkOf(await client.next())])).toBe("Half an ans");
    run.fail({ code: "provider_interrupted", message: "broke off" }, "Half an ans");
    const frames = await client.all();
    expect(frames).toHaveLength(1);
    expect(chunkOf(frames[0] ?? "").error).toMatchObject({ code: "provider_interrupted" });
  });
});

async function leave(body: object, headers: Record<string, string> = {}, stream = true) {
  const gateway = await openGateway();
  const url = await gateway.listen();
  const leaving = new AbortController();
  const next = gateway.conversations.next();
  const request = fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { ...bearer(gateway.owner), ...headers },
    body: JSON.stringify(chat("hi", { stream, ...body }).payload),
    signal: leaving.signal,
  });
  const run = await next;
  if (stream) {
    run.begin(0).say("words");
    const client = new SseClient(await request);
    await client.next();
    await client.close();
  } else {
    leaving.abort();
    await expect(request).rejects.toThrow(/abort/i);
  }
  await gateway.obs.ended(1);
  return gateway.conversations.cancelled;
}

describe("a client that goes away", () => {
  test.each([true, false])("cancels a stateless run (stream: %s)", async (stream) => {
    const cancelled = await leave({}, {}, stream);
    expect(cancelled.map(({ reason }) => reason)).toEqual(["disconnected"]);
  });

  test.each([true, false])("leaves a stateful run alone (stream: %s)", async (stream) => {
    expect(await leave({ session_id: "s" }, {}, stream)).toEqual([]);
  });

  test("leaves a run alone that a key can lead back to", async () => {
    expect(await leave({}, { "idempotency-key": "k" })).toEqual([]);
  });

  test("leaves no reader and no timer behind", async () => {
    const gateway = await openGateway();
    const next = gateway.conversations.next();
    const opening = open(gateway, await gateway.listen(), { session_id: "s" });
    const run = await next;
    run.begin(0).say("words");
    const client = await opening;
    await client.next();
    expect(gateway.clock.pending).toBeGreaterThan(0);
    await client.close();
    await gateway.obs.ended(1);
    expect(gateway.clock.pending).toBe(0);
  });
});

describe("a slow client", () => {
  test("is served from its position when its socket drains, and slows nobody", async () => {
    const gateway = await openGateway();
    const url = new URL(await gateway.listen());
    const next = gateway.conversations.next();
    const socket = connect(Number(url.port), url.hostname).pause();
    const body = JSON.stringify(streamed("hi", { session_id: "s" }).payload);
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: ${url.host}\r\nauthorization: Bearer ${gateway.owner}\r\n` +
        `connection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    const run = await next;
    run.begin(0);
    const piece = "0123456789abcdef".repeat(1024);
    for (let count = 0; count < 1024; count += 1) {
      run.say(piece);
      await Promise.resolve();
    }
    run.complete(run.live.segments[0]?.text ?? "");
    // 16 MiB are said and the client has read nothing: what waits for it in our memory stays small.
    const held = gateway.openSockets().map(({ writableLength }) => writableLength);
    expect(Math.max(...held)).toBeLessThan(256 * 1024);
    let text = "";
    socket.setEncoding("utf8").on("data", (data: string) => {
      text += data;
    });
    await once(socket.resume(), "end");
    expect(text.split("0123456789abcdef").length - 1).toBe(1024 * 1024);
    expect(text).toContain("data: [DONE]");
  });
});

describe("a crowd", () => {
  test("beyond 32 streams the pieces of one answer are merged, its first and its end are not held", async () => {
    const gateway = await openGateway();
    const url = await gateway.listen();
    const runs = [];
    const openings = [];
    for (let count = 0; count < 33; count += 1) {
      const next = gateway.conversations.next();
      openings.push(open(gateway, url, { session_id: `s${count}` }));
      runs.push(await next);
    }
    for (const run of runs) run.begin(0).say("a");
    const clients = await Promise.all(openings);
    const [run] = runs;
    const [client] = clients;
    await client?.next();
    expect(contentOf([chunkOf((await client?.next()) ?? "")])).toBe("a");
    for (const piece of ["b", "c"]) {
      run?.say(piece);
      await Promise.resolve();
    }
    await gateway.clock.advance(10);
    expect(contentOf([chunkOf((await client?.next()) ?? "")])).toBe("bc");
    run?.say("d").complete("abcd");
    const { chunks, done } = chunksOf((await client?.all()) ?? []);
    expect(contentOf(chunks)).toBe("d");
    expect(done).toBe(true);
  });
});
