import { describe, expect, test } from "vitest";
import { isStrongSecret, mintTokenSecret, OWNER_TOKEN, TokenBook } from "../../src/gateway/tokens.ts";
import { ManualClock } from "../../src/kernel/clock.ts";
import { verifies } from "../support/verifies.ts";
import { bearer, chat, coder, openGateway } from "./harness.ts";
import { MemoryTokens } from "./memory-store.ts";

const bookOf = async (store = new MemoryTokens(), clock = new ManualClock(1_000)) => ({
  book: await TokenBook.open(store, clock),
  store,
  clock,
});
const chatToken = { name: "web", scopes: ["chat"], agent: null, expiresAt: null };

describe("tokens", () => {
  test("are 256 bits behind a prefix, and the store sees only their hash", async () => {
    const { book, store } = await bookOf();
    const secret = await book.create(chatToken);
    expect(secret).toMatch(/^beamclaw_[A-Za-z0-9_-]{43}$/);
    expect(book.find(secret)).toMatchObject({ token: "web", door: "token" });
    expect(JSON.stringify(await store.list())).not.toContain(secret.slice(9));
  });

  test("are refused from the moment of their revocation or expiry", async () => {
    const { book, clock } = await bookOf();
    const revoked = await book.create(chatToken);
    expect(await book.revoke("web")).toBe(true);
    expect(book.find(revoked)).toBeNull();
    expect(await book.revoke("web")).toBe(false);
    const expiring = await book.create({ ...chatToken, name: "kiosk", expiresAt: 2_000 });
    expect(book.find(expiring)).not.toBeNull();
    await clock.advance(1_000);
    expect(book.find(expiring)).toBeNull();
  });

  test("survive a restart", async () => {
    const { book, store } = await bookOf();
    const secret = await book.create(chatToken);
    expect((await bookOf(store)).book.find(secret)?.token).toBe("web");
  });

  test.each([
    [{ ...chatToken, name: "a/b" }, "name"],
    [{ ...chatToken, name: "" }, "name"],
    [{ ...chatToken, scopes: [] }, "scopes"],
    [{ ...chatToken, scopes: ["chat", "root"] }, "scopes"],
    [{ ...chatToken, scopes: ["owner"] }, "scopes"],
  ])("%j cannot be made", async (token, param) => {
    const { book } = await bookOf();
    await expect(book.create(token)).rejects.toMatchObject({ code: "invalid_request", param });
  });

  test("have a name each, which nobody inherits with its conversations", async () => {
    const { book } = await bookOf();
    await book.create(chatToken);
    await expect(book.create(chatToken)).rejects.toMatchObject({ code: "token_exists" });
    await book.revoke(chatToken.name);
    await expect(book.create(chatToken)).rejects.toMatchObject({ code: "token_exists" });
  });

  test("the owner's file replaces the owner token; the same file again changes nothing", async () => {
    const { book, store } = await bookOf();
    const [first, second] = [mintTokenSecret(), mintTokenSecret()];
    await book.ensureOwner(first);
    await book.ensureOwner(first);
    expect(await store.list()).toHaveLength(1);
    expect(book.find(first)?.token).toBe(OWNER_TOKEN);
    await book.ensureOwner(second);
    expect(book.find(first)).toBeNull();
    expect(book.find(second)?.scopes.has("owner")).toBe(true);
  });

  test.each([
    "",
    "changeme",
    "undefined",
    "[REDACTED]",
    `beamclaw_${"x".repeat(43)}`,
    `beamclaw_${"ab".repeat(22)}`,
  ])("the placeholder %j is no token", async (secret) => {
    expect(isStrongSecret(secret)).toBe(false);
    const { book } = await bookOf();
    await expect(book.ensureOwner(secret)).rejects.toMatchObject({ code: "configuration" });
  });
});

const guarded = [
  ["GET", "/metrics"],
  ["GET", "/v1/models"],
  ["GET", "/v1/models/beamclaw"],
  ["POST", "/v1/chat/completions"],
  ["GET", "/v1/sessions"],
  ["GET", "/v1/sessions/x"],
  ["GET", "/v1/sessions/x/messages"],
  ["DELETE", "/v1/sessions/x"],
  ["POST", "/v1/sessions/x/reset"],
  ["GET", "/v1/runs"],
  ["GET", "/v1/runs/x"],
  ["POST", "/v1/runs/x/cancel"],
  ["GET", "/v1/runs/x/events"],
  ["GET", "/v1/approvals"],
  ["GET", "/v1/approvals/x"],
  ["POST", "/v1/approvals/x"],
] as const;

describe("the gate", () => {
  verifies(["W23"], "every route but health, readiness and the description wants a token", async () => {
    const gateway = await openGateway();
    for (const [method, url] of guarded) {
      for (const authorization of [
        "",
        "Bearer",
        "Bearer wrong",
        "Basic abc",
        `Bearer ${mintTokenSecret()}`,
      ]) {
        const response = await gateway.inject({ method, url, headers: { authorization } });
        expect([url, response.statusCode]).toEqual([url, 401]);
        expect(response.headers["www-authenticate"]).toBe("Bearer");
      }
    }
    for (const url of ["/health", "/ready", "/openapi.json"]) {
      const response = await gateway.inject({ url, headers: { authorization: "" } });
      expect(response.statusCode).toBe(200);
    }
  });

  test("a token without the scope is told which one is missing", async () => {
    const gateway = await openGateway();
    const headers = await gateway.token("m", ["metrics"]);
    for (const [method, url] of guarded) {
      const response = await gateway.inject({ method, url, headers });
      expect([url, response.statusCode]).toEqual([url, url === "/metrics" ? 200 : 403]);
    }
    expect((await gateway.inject({ url: "/v1/models", headers })).json().error.message).toContain(
      "scope chat",
    );
  });

  test("a revoked token is refused at once, and refusals are counted", async () => {
    const gateway = await openGateway();
    const headers = await gateway.token("web", ["chat"]);
    expect((await gateway.inject({ url: "/v1/models", headers })).statusCode).toBe(200);
    await gateway.tokens.revoke("web");
    expect((await gateway.inject({ url: "/v1/models", headers })).statusCode).toBe(401);
    expect(gateway.obs.refused).toMatchObject([{ code: "unauthorized" }]);
  });

  test("a token in the URL is none", async () => {
    const gateway = await openGateway();
    const url = `/v1/models?token=${gateway.owner}&access_token=${gateway.owner}`;
    expect((await gateway.inject({ url, headers: { authorization: "" } })).statusCode).toBe(401);
  });

  test("the local socket needs none", async () => {
    const gateway = await openGateway({ door: "local" });
    const response = await gateway.inject({ ...chat("hi", { user_id: "" }), headers: { host: "anything" } });
    expect(response.statusCode).toBe(200);
    expect(gateway.conversations.submissions[0]).toMatchObject({
      principal: "local:alice",
      channel: "socket",
      mayDecide: true,
      input: { origin: { channel: "socket", token: null } },
    });
  });

  test("a restricted token sees its agent only", async () => {
    const gateway = await openGateway();
    const secret = await gateway.tokens.create({ ...chatToken, scopes: ["chat", "admin"], agent: coder });
    await gateway.inject(chat("hi", { session_id: "of-default" }));
    const headers = bearer(secret);
    const { data } = (await gateway.inject({ url: "/v1/models", headers })).json();
    expect(data.map(({ id }: { id: string }) => id)).toEqual(["beamclaw", "beamclaw/coder"]);
    expect((await gateway.inject({ url: "/v1/sessions", headers })).json().data).toEqual([]);
    expect((await gateway.inject({ url: "/v1/sessions/of-default", headers })).statusCode).toBe(404);
  });
});
