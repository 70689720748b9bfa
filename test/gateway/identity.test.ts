import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type AgentName,
  asId,
  deriveSessionId,
  type Principal,
  type SessionId,
} from "../../src/domain/ids.ts";
import { type Caller, localCaller, type Scope } from "../../src/gateway/caller.ts";
import { canonicalUser, identify, resolveConversation } from "../../src/gateway/identity.ts";
import type { IdentityRules } from "../../src/gateway/ports.ts";
import { verifies } from "../support/verifies.ts";
import { agent, coder } from "./harness.ts";
import { MemoryStore } from "./memory-store.ts";

const caller = (token: string, ...scopes: readonly Scope[]): Caller => ({
  door: "token",
  token,
  scopes: new Set(["chat", ...scopes]),
  agent: null,
});
const rulesOf = (user?: string, sharing: IdentityRules["sharing"] = "shared"): IdentityRules => ({
  canonicalUser: canonicalUser(user),
  localUser: "alice",
  sharing,
  defaultAgent: agent,
});
const agents = { list: async () => [], exists: (name: AgentName) => name === agent || name === coder };

const plain = caller("web");
const free = caller("front", "impersonate");
const admin = caller("root", "admin");

const resolve = (
  who: Caller,
  naming: { user?: string; session?: string; agent?: string },
  { rules = rulesOf(), store = new MemoryStore() } = {},
) =>
  resolveConversation({ rules, agents, store }, who, { user: null, session: null, agent: null, ...naming });

function withSession(id: string, principal: string, of = agent): MemoryStore {
  const store = new MemoryStore();
  const sessionId = asId<SessionId>(id);
  store.savedSessions.set(sessionId, {
    id: sessionId,
    principal: asId<Principal>(principal),
    agent: of,
    channel: "http",
    createdAt: 0,
    updatedAt: 0,
    startSeq: 0,
    messageCount: 0,
  });
  return store;
}

describe("principals", () => {
  test.each<[string, Caller, string | null, string | undefined, string]>([
    ["a token speaks for its own users", plain, "bob", undefined, "api:web/bob"],
    ["and for nobody in particular", plain, null, undefined, "api:web/anonymous"],
    ["impersonate names any user", free, "bob", undefined, "api:bob"],
    ["the local socket is its user", localCaller, null, undefined, "local:alice"],
    ["who may name others", localCaller, "bob", undefined, "api:bob"],
    ["BEAMCLAW_USER replaces the local identity", localCaller, "bob", "peter", "peter"],
    ["and that of tokens with impersonate", free, "bob", "peter", "peter"],
    ["but not that of other tokens", plain, "bob", "peter", "api:web/bob"],
  ])("%s", (_, who, user, setting, principal) => {
    expect(identify(rulesOf(setting), who, user).principal).toBe(principal);
  });

  verifies(["W70"], "an empty BEAMCLAW_USER is unset and merges nobody", () => {
    for (const setting of ["", "  ", undefined]) {
      expect(identify(rulesOf(setting), free, "bob").principal).toBe("api:bob");
      expect(identify(rulesOf(setting), free, "eve").principal).toBe("api:eve");
    }
  });

  verifies(["W70"], "no user of one token can be taken for a user of another", () => {
    const name = fc.stringMatching(/^[a-zA-Z0-9][a-zA-Z0-9._-]{0,8}$/);
    const user = fc.stringMatching(/^[a-z:/]{1,8}$/);
    fc.assert(
      fc.property(name, user, name, user, (tokenA, userA, tokenB, userB) => {
        const a = identify(rulesOf(), caller(tokenA), userA).principal;
        const b = identify(rulesOf(), caller(tokenB), userB).principal;
        expect(a === b).toBe(tokenA === tokenB && userA === userB);
      }),
    );
  });

  test.each(["", "a\u0000b", "a\nb", "x".repeat(257)])("%j is no user", (user) => {
    expect(() => identify(rulesOf(), free, user)).toThrow(expect.objectContaining({ param: "user_id" }));
  });
});

describe("session ids", () => {
  test("are derived as they always were", async () => {
    const vectors: readonly [Caller, string | null, string | undefined, string][] = [
      [localCaller, null, undefined, "session-063f1b732ad8051f216397130447e116"],
      [localCaller, null, "peter", "session-3b9b716ec3d9d346c82e3a755d6c2565"],
      [free, "anonymous", undefined, "session-339351216c41bd8627acf27545508783"],
    ];
    for (const [who, user, setting, id] of vectors) {
      const { principal } = identify(rulesOf(setting), who, user);
      expect(deriveSessionId(principal, agent)).toBe(id);
    }
    expect(await resolve(free, { user: "anonymous" })).toMatchObject({
      sessionId: "session-339351216c41bd8627acf27545508783",
    });
  });

  test("per channel, HTTP has its own", async () => {
    const { sessionId } = await resolve(free, { user: "bob" }, { rules: rulesOf(undefined, "per_channel") });
    expect(sessionId).toBe(deriveSessionId(asId<Principal>("api:bob"), agent, "http"));
  });

  test("without a session and a person there is none, unless BEAMCLAW_USER is the person", async () => {
    expect((await resolve(free, {})).sessionId).toBeNull();
    expect((await resolve(free, {}, { rules: rulesOf("peter") })).sessionId).toMatch(/^session-/);
    expect((await resolve(plain, {}, { rules: rulesOf("peter") })).sessionId).toBeNull();
    expect((await resolve(free, { session: "none" }, { rules: rulesOf("peter") })).sessionId).toBeNull();
  });

  test("a name means another session for each principal and agent, and the same one every time", async () => {
    const ids = await Promise.all([
      resolve(plain, { session: "s", user: "bob" }),
      resolve(plain, { session: "s", user: "eve" }),
      resolve(plain, { session: "s", user: "bob", agent: "coder" }),
      resolve(caller("web2"), { session: "s", user: "bob" }),
      resolve(plain, { session: "t", user: "bob" }),
    ]);
    expect(new Set(ids.map(({ sessionId }) => sessionId)).size).toBe(5);
    expect(await resolve(plain, { session: "s", user: "bob" })).toEqual(ids[0]);
  });

  test("with admin a name is an id, verbatim; an existing session keeps its person and agent", async () => {
    expect(await resolve(admin, { session: "s" })).toMatchObject({ sessionId: "s" });
    const store = withSession("s", "tg:12345", coder);
    expect(await resolve(admin, { session: "s" }, { store })).toEqual({
      sessionId: "s",
      principal: "tg:12345",
      agent: "coder",
    });
    await expect(resolve(admin, { session: "s", agent: "default" }, { store })).rejects.toThrow(/coder/);
  });

  verifies(["W23"], "another's session is not found, whoever is named", async () => {
    const id = "session-3838bf7cb36d14c875df39b7d70fb3e1";
    const store = withSession(id, "tg:12345");
    for (const who of [plain, free]) {
      for (const user of [undefined, "12345", "tg:12345"]) {
        const naming = { session: id, ...(user !== undefined && { user }) };
        await expect(resolve(who, naming, { store })).rejects.toMatchObject({ code: "not_found" });
      }
    }
    await expect(resolve(plain, { session: `session-${"0".repeat(32)}` })).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("an id leads back to the token's session without the user's name, but not under another's", async () => {
    const id = "session-3838bf7cb36d14c875df39b7d70fb3e1";
    const store = withSession(id, "api:web/bob");
    expect(await resolve(plain, { session: id }, { store })).toMatchObject({ principal: "api:web/bob" });
    await expect(resolve(plain, { session: id, user: "eve" }, { store })).rejects.toMatchObject({
      code: "not_found",
    });
    await expect(resolve(caller("we"), { session: id }, { store })).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("a stateless run's session cannot be continued, by nobody", async () => {
    await expect(resolve(admin, { session: "ephemeral-1" })).rejects.toMatchObject({ code: "not_found" });
  });

  test.each(["a b", "é", "x".repeat(129)])("%j is no session", async (session) => {
    await expect(resolve(admin, { session })).rejects.toMatchObject({ param: "session_id" });
  });
});
