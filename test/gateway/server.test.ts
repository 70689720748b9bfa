import { once } from "node:events";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { bearer, chat, openGateway } from "./harness.ts";
import { chunksOf, SseClient } from "./sse-client.ts";

/** Writes raw bytes to the gateway and reads until it closes the connection. */
async function raw(url: string, bytes: string): Promise<string> {
  const { port, hostname } = new URL(url);
  const socket = connect(Number(port), hostname);
  let text = "";
  socket.setEncoding("latin1").on("data", (data: string) => {
    text += data;
  });
  socket.write(bytes);
  await once(socket, "close");
  return text;
}

describe("the shape of errors", () => {
  test("is OpenAI's under /v1 and ours elsewhere", async () => {
    const gateway = await openGateway();
    const openAi = await gateway.inject({ url: "/v1/nothing" });
    expect(openAi.statusCode).toBe(404);
    expect(openAi.json()).toEqual({
      error: {
        message: "no such route. Check the path and the id.",
        type: "not_found_error",
        param: null,
        code: "not_found",
      },
    });
    const ours = await gateway.inject({ url: "/nothing" });
    expect(ours.json()).toEqual({ error: "no such route. Check the path and the id.", code: "not_found" });
    for (const response of [openAi, ours]) expect(response.headers["x-request-id"]).toMatch(/^[\w-]{36}$/);
  });

  test.each([
    ["DELETE", "/v1/chat/completions", "POST"],
    ["PUT", "/v1/sessions/x", "GET, DELETE"],
    ["PATCH", "/v1/models/beamclaw/x", "GET"],
    ["POST", "/health", "GET, HEAD"],
    ["OPTIONS", "/v1/runs/x/events", "GET"],
  ] as const)("%s %s is 405 with Allow: %s", async (method, url, allow) => {
    const gateway = await openGateway();
    const response = await gateway.inject({ method, url });
    expect([response.statusCode, response.headers.allow]).toEqual([405, allow]);
  });

  test("bad JSON is 400, too much of it 413, and any media type is read as JSON", async () => {
    const gateway = await openGateway({ bodyLimitBytes: 1024 });
    const post = (payload: string, type = "application/json") =>
      gateway.inject({
        method: "POST",
        url: "/v1/chat/completions",
        headers: { "content-type": type },
        payload,
      });
    const codes = [];
    for (const payload of ['{"messages":', "[]", '"x"', "null", " ".repeat(2000)]) {
      const response = await post(payload);
      codes.push([response.statusCode, response.json().error.code]);
    }
    expect(codes).toEqual([
      [400, "invalid_json"],
      [400, "invalid_json"],
      [400, "invalid_json"],
      [400, "invalid_request"],
      [413, "body_too_large"],
    ]);
    const form = await post(JSON.stringify(chat("hi").payload), "application/x-www-form-urlencoded");
    expect(form.statusCode).toBe(200);
    expect((await post("{}", "no type at all")).json().error.param).toBe("content-type");
    expect((await post("{}")).json().error).toMatchObject({ param: "messages", code: "invalid_request" });
  });

  test("a body in another encoding is refused, a byte order mark is skipped", async () => {
    const gateway = await openGateway();
    const post = (payload: Buffer | string, headers: Record<string, string> = {}) =>
      gateway.inject({ method: "POST", url: "/v1/chat/completions", headers, payload });
    const json = JSON.stringify(chat("hi").payload);
    expect((await post(`\ufeff${json}`)).statusCode).toBe(200);
    const latin1 = await post(Buffer.from(json.replace("hi", "café"), "latin1"));
    expect(latin1.json().error).toMatchObject({
      code: "invalid_json",
      message: expect.stringContaining("UTF-8"),
    });
    const packed = await post(gzipSync(json), { "content-encoding": "gzip" });
    expect(packed.statusCode).toBe(400);
    expect(packed.json().error).toMatchObject({ code: "invalid_request", param: "content-encoding" });
  });

  test("a defect is 500 without its text, which the log gets", async () => {
    const gateway = await openGateway();
    gateway.conversations.script = () => {
      throw new Error("secret detail");
    };
    const response = await gateway.inject(chat("hi"));
    expect(response.statusCode).toBe(500);
    expect(response.body).not.toContain("secret");
    expect(gateway.obs.defects.map(({ message }) => message)).toEqual(["secret detail"]);
  });

  test("a harmless request id is taken over, a harmful one is not", async () => {
    const gateway = await openGateway();
    const idOf = async (id: string) =>
      (await gateway.inject({ url: "/health", headers: { "x-request-id": id } })).headers["x-request-id"];
    expect(await idOf("trace-1.2:3")).toBe("trace-1.2:3");
    expect(await idOf("a b")).not.toBe("a b");
    expect(await idOf("x".repeat(200))).toHaveLength(36);
  });

  test("requests are counted by pattern, not by path", async () => {
    const gateway = await openGateway();
    await gateway.inject({ url: "/v1/runs/some-id" });
    await gateway.inject({ url: "/nothing/at/all" });
    expect(gateway.obs.requests).toMatchObject([
      { method: "GET", route: "/v1/runs/:id", status: 404, token: "owner" },
      { method: "GET", route: "none", status: 404, token: null },
    ]);
  });
});

describe("bad HTTP", () => {
  test.each([
    ["nonsense", 400, "NONSENSE\r\n\r\n"],
    ["a broken header", 400, "GET / HTTP/1.1\r\nhost: localhost\r\ncontent-length: x\r\n\r\n"],
    ["a huge header", 431, `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${"y".repeat(20_000)}\r\n\r\n`],
  ])("%s is answered %i, with an id, and the connection closed", async (_, status, bytes) => {
    const gateway = await openGateway();
    const answer = await raw(await gateway.listen(), bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toContain('"code":"invalid_request"');
    expect(answer).toContain("x-request-id: ");
  });

  test("a path that cannot be decoded is 400", async () => {
    const gateway = await openGateway();
    const answer = await raw(
      await gateway.listen(),
      "GET /v1/runs/%zz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    );
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(answer).toContain('"type":"invalid_request_error"');
  });
});

describe("strangers", () => {
  test.each([
    ["127.0.0.1:18800", 200],
    ["localhost", 200],
    ["LOCALHOST:1", 200],
    ["[::1]:18800", 200],
    ["claw.lan:18800", 200],
    ["evil.example", 403],
    ["127.0.0.1.evil.example:18800", 403],
    ["localhost.evil.example", 403],
    ["10.0.0.1", 403],
  ])("on loopback the Host %s gets %i", async (host, status) => {
    const gateway = await openGateway({ door: { hosts: ["claw.lan"] } });
    expect((await gateway.inject({ url: "/health", headers: { host } })).statusCode).toBe(status);
  });

  test("elsewhere any Host is served", async () => {
    const gateway = await openGateway({ door: { loopback: false } });
    expect((await gateway.inject({ url: "/health", headers: { host: "claw.example" } })).statusCode).toBe(
      200,
    );
  });

  test.each([
    ["https://evil.example", 403],
    ["null", 403],
    ["http://127.0.0.1:9999", 403],
    ["http://127.0.0.1:18800", 200],
    ["https://app.example", 200],
  ])("a page of %s gets %i", async (origin, status) => {
    const gateway = await openGateway({ door: { corsOrigins: ["https://app.example"] } });
    const response = await gateway.inject({ url: "/v1/models", headers: { origin } });
    expect(response.statusCode).toBe(status);
  });

  test("a configured page gets CORS headers, on refusals and streams too, and its preflight", async () => {
    const gateway = await openGateway({ door: { corsOrigins: ["https://app.example"] } });
    const origin = { origin: "https://app.example" };
    const preflight = await gateway.inject({
      method: "OPTIONS",
      url: "/v1/chat/completions",
      headers: { ...origin, "access-control-request-method": "POST", authorization: "" },
    });
    expect(preflight.statusCode).toBe(204);
    const answers = [
      await gateway.inject(chat("hi", {}, origin)),
      await gateway.inject(chat("hi", { stream: true }, origin)),
      await gateway.inject({ url: "/v1/models", headers: { ...origin, authorization: "" } }),
    ];
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 401]);
    for (const { headers } of answers) {
      expect(headers["access-control-allow-origin"]).toBe("https://app.example");
      expect(headers["access-control-expose-headers"]).toContain("x-run-id");
    }
  });
});

describe("draining", () => {
  test("refuses new work, lets reads through, and waits for what is open", async () => {
    const gateway = await openGateway();
    const url = await gateway.listen();
    const next = gateway.conversations.next();
    const opening = fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: bearer(gateway.owner),
      body: JSON.stringify(chat("hi", { stream: true }).payload),
    });
    const run = await next;
    run.begin(0).say("one ");
    const client = new SseClient(await opening);
    let drained = false;
    const drain = (async () => {
      await gateway.drain();
      drained = true;
    })();
    const refused = await gateway.inject(chat("more"));
    expect([refused.statusCode, refused.json().error.code]).toEqual([503, "shutting_down"]);
    expect(refused.headers).toMatchObject({ "retry-after": "5", connection: "close" });
    expect((await gateway.inject({ url: "/ready" })).json().status).toBe("draining");
    expect((await gateway.inject({ url: "/v1/runs" })).statusCode).toBe(200);
    expect(drained).toBe(false);
    run.say("two").complete("one two");
    expect(chunksOf(await client.all()).done).toBe(true);
    await drain;
  });

  test("closing ends what will not end by itself", async () => {
    const gateway = await openGateway();
    const url = await gateway.listen();
    const next = gateway.conversations.next();
    const opening = fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: bearer(gateway.owner),
      body: JSON.stringify(chat("hi", { session_id: "s", stream: true }).payload),
    });
    (await next).begin(0).say("for ever");
    const client = new SseClient(await opening);
    await gateway.close();
    await expect(client.all()).rejects.toThrow(/terminated/);
  });
});
