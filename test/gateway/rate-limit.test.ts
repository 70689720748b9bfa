import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { addressBucket, isLoopback, SlidingWindow } from "../../src/gateway/rate-limit.ts";
import { ManualClock } from "../../src/kernel/clock.ts";
import { verifies } from "../support/verifies.ts";
import { chat, openGateway } from "./harness.ts";

describe("the sliding window", () => {
  test("no window of its length ever holds more admissions than allowed, and the wait it names is enough", async () => {
    const arrivals = fc.array(fc.integer({ min: 0, max: 4000 }), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 5 }), arrivals, async (requests, gaps) => {
        const clock = new ManualClock();
        const window = new SlidingWindow({ requests, windowSeconds: 10 }, clock);
        const admitted: number[] = [];
        for (const gap of gaps) {
          await clock.advance(gap);
          const peeked = window.peek("a");
          const wait = window.take("a");
          expect(wait).toBe(peeked);
          if (wait === 0) admitted.push(clock.monotonic());
        }
        for (const [index, at] of admitted.entries()) {
          const oldest = admitted[index - requests];
          if (oldest !== undefined) expect(at - oldest).toBeGreaterThanOrEqual(10_000);
        }
        const wait = window.peek("a");
        await clock.advance(wait * 1000);
        expect(window.take("a")).toBe(0);
      }),
      { numRuns: 40 },
    );
  });

  test("clients do not share a window, and there are only so many", async () => {
    const window = new SlidingWindow({ requests: 1, windowSeconds: 60 }, new ManualClock());
    expect([window.take("a"), window.take("b"), window.take("a")]).toEqual([0, 0, 60]);
    for (let client = 0; client < 10_000; client += 1) window.take(String(client));
    expect(window.peek("a")).toBe(0);
  });
});

test("an IPv6 customer is one client, and so is a mapped IPv4 address", () => {
  expect(addressBucket("2001:db8::1")).toBe(addressBucket("2001:db8::ffff:2"));
  expect(addressBucket("2001:db8:0:1::1")).not.toBe(addressBucket("2001:db8::1"));
  expect(addressBucket("::ffff:192.0.2.1")).toBe(addressBucket("192.0.2.1"));
  expect(addressBucket("nonsense")).toBe("unknown");
  expect(["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "10.0.0.1"].map(isLoopback)).toEqual([
    true,
    true,
    true,
    true,
    false,
  ]);
});

const rateLimit = { requests: 2, windowSeconds: 60, limitLocal: false };
const far = { remoteAddress: "203.0.113.9" };

const forwarded = (client: string) => ({ "x-forwarded-for": client, authorization: "Bearer wrong" });

const statusesOf = async (limitLocal: boolean, headers: Record<string, string> = {}) => {
  const gateway = await openGateway({ door: { rateLimit: { ...rateLimit, limitLocal } } });
  const token = await gateway.token("a", ["chat"]);
  const found = [];
  for (let count = 0; count < 3; count += 1) {
    found.push((await gateway.inject({ url: "/v1/models", headers: { ...token, ...headers } })).statusCode);
  }
  const owner = [];
  for (let count = 0; count < 3; count += 1) {
    owner.push((await gateway.inject({ url: "/v1/models", headers, ...far })).statusCode);
  }
  return [found, owner];
};

const statusesBehind = async (trustProxy: readonly string[]) => {
  const gateway = await openGateway({ door: { loopback: false, rateLimit, trustProxy } });
  const found = [];
  for (let client = 1; client <= 4; client += 1) {
    const headers = forwarded(`198.51.100.${client}`);
    found.push((await gateway.inject({ url: "/v1/models", headers, remoteAddress: "10.0.0.1" })).statusCode);
  }
  return found;
};

describe("limits", () => {
  verifies(["W58"], "count per token, with Retry-After, and end with the window", async () => {
    const gateway = await openGateway({ door: { loopback: false, rateLimit } });
    const [a, b] = [await gateway.token("a", ["chat"]), await gateway.token("b", ["chat"])];
    const ask = (headers: Record<string, string>) => gateway.inject({ ...chat("hi", {}, headers), ...far });
    const statuses = [];
    for (const headers of [a, a, a, b]) statuses.push((await ask(headers)).statusCode);
    expect(statuses).toEqual([200, 200, 429, 200]);
    const refused = await ask(a);
    expect(refused.headers["retry-after"]).toBe("60");
    expect(refused.json().error).toMatchObject({ code: "rate_limited", type: "rate_limit_error" });
    await gateway.clock.advance(60_000);
    expect((await ask(a)).statusCode).toBe(200);
  });

  verifies(["W58"], "slow down guessing from one address, and from no other", async () => {
    const gateway = await openGateway({ door: { loopback: false, rateLimit } });
    const guess = (remoteAddress: string, authorization = "Bearer beamclaw_guess") =>
      gateway.inject({ url: "/v1/models", headers: { authorization }, remoteAddress });
    expect((await guess("203.0.113.9")).statusCode).toBe(401);
    expect((await guess("203.0.113.9")).statusCode).toBe(401);
    expect((await guess("203.0.113.9")).statusCode).toBe(429);
    expect((await guess("203.0.113.9", `Bearer ${gateway.owner}`)).statusCode).toBe(429);
    expect((await guess("203.0.113.10", `Bearer ${gateway.owner}`)).statusCode).toBe(200);
  });

  verifies(["W58"], "a proxy's word about the client counts only where the proxy is trusted", async () => {
    expect(await statusesBehind([])).toEqual([401, 401, 429, 429]);
    expect(await statusesBehind(["10.0.0.0/8"])).toEqual([401, 401, 401, 401]);
  });

  test("leave the owner and loopback alone, unless configured; a local proxy's clients are not local", async () => {
    expect(await statusesOf(false)).toEqual([
      [200, 200, 200],
      [200, 200, 200],
    ]);
    expect(await statusesOf(true)).toEqual([
      [200, 200, 429],
      [200, 200, 429],
    ]);
    expect((await statusesOf(false, { "x-forwarded-for": "198.51.100.1" }))[0]).toEqual([200, 200, 429]);
  });

  test("do not touch routes that need no token", async () => {
    const gateway = await openGateway({ door: { loopback: false, rateLimit } });
    for (let count = 0; count < 5; count += 1) {
      expect((await gateway.inject({ url: "/health", ...far })).statusCode).toBe(200);
    }
  });
});
