import { getEventListeners } from "node:events";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ModelOutcome, Provider } from "../../src/agent/provider.ts";
import { ManualClock } from "../../src/kernel/clock.ts";
import { CircuitProvider, Circuits } from "../../src/providers/circuit-provider.ts";
import { FallbackProvider } from "../../src/providers/fallback-provider.ts";
import { LimitedProvider } from "../../src/providers/limited-provider.ts";
import { RetryingProvider } from "../../src/providers/retrying-provider.ts";
import { fail, hang, say, ScriptedProvider, type ScriptStep } from "../../src/providers/scripted-provider.ts";
import { ask, modelRequest } from "../support/model-request.ts";
import { verifies } from "../support/verifies.ts";

const request = modelRequest("hi");
const answered = (text: string): object => ({ outcome: { kind: "answered", answer: { text } } });
const failed = (code: string): object => ({ outcome: { kind: "failed", failure: { code } } });
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("RetryingProvider", () => {
  const clock = new ManualClock();
  const retrying = (inner: Provider, retries = 2): RetryingProvider =>
    new RetryingProvider(inner, { retries, retrySeconds: 30 }, clock, () => 0.5);

  verifies("W63", "tries again after a pause, so many times", async () => {
    const inner = new ScriptedProvider([fail("provider_unavailable"), fail("provider_timeout"), say("yes")]);
    const asked = ask(retrying(inner), request);
    await clock.advance(10_000);
    expect(await asked).toMatchObject(answered("yes"));
    const poor = new ScriptedProvider([fail("provider_unavailable"), fail("provider_timeout"), say("late")]);
    const given = ask(retrying(poor, 1), request);
    await clock.advance(10_000);
    expect(await given).toMatchObject(failed("provider_timeout"));
    expect(poor.left).toBe(1);
  });

  test("waits as long as the provider asks, or not at all if that is too long", async () => {
    const inner = new ScriptedProvider([
      fail("provider_rate_limited", { retryAfterSeconds: 20 }),
      say("yes"),
    ]);
    const asked = ask(retrying(inner), request);
    await clock.advance(19_999);
    expect(inner.left).toBe(1);
    await clock.advance(1);
    expect(await asked).toMatchObject(answered("yes"));
    const patient = new ScriptedProvider([
      fail("provider_rate_limited", { retryAfterSeconds: 31 }),
      say("late"),
    ]);
    expect(await ask(retrying(patient), request)).toMatchObject(failed("provider_rate_limited"));
  });

  verifies("W63", "never repeats what was begun, nor what cannot get better", async () => {
    const begun = new ScriptedProvider([fail("provider_interrupted", { deltas: ["half"] }), say("twice")]);
    expect(await ask(retrying(begun), request)).toMatchObject({
      said: "half",
      ...failed("provider_interrupted"),
    });
    const hopeless = new ScriptedProvider([fail("provider_rejected", { retryable: false }), say("no")]);
    expect(await ask(retrying(hopeless), request)).toMatchObject(failed("provider_rejected"));
    expect([begun.left, hopeless.left]).toEqual([1, 1]);
  });

  test("a cancellation ends the pause", async () => {
    const controller = new AbortController();
    const inner = new ScriptedProvider([fail("provider_unavailable"), say("late")]);
    const asked = ask(retrying(inner), request, controller.signal);
    await turn();
    controller.abort();
    expect((await asked).outcome).toEqual({ kind: "cancelled" });
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  test("the retries together never begin after their time, whatever fails", async () => {
    const delays = fc.array(fc.option(fc.integer({ min: 0, max: 40 })), { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(delays, fc.double({ min: 0, max: 0.99, noNaN: true }), async (waits, random) => {
        const own = new ManualClock();
        const starts: number[] = [];
        const steps = waits.map((wait) => (): ScriptStep => {
          starts.push(own.monotonic());
          return fail("provider_unavailable", wait === null ? {} : { retryAfterSeconds: wait });
        });
        const inner = new ScriptedProvider(steps);
        const provider = new RetryingProvider(inner, { retries: 20, retrySeconds: 30 }, own, () => random);
        const asked = ask(provider, request);
        await own.advance(3_600_000);
        expect((await asked).outcome.kind).toBe("failed");
        expect(starts.every((start) => start <= 30_000)).toBe(true);
      }),
      { numRuns: 30 },
    );
  });
});

describe("LimitedProvider", () => {
  /** Answers when told to; counts how many calls are inside. */
  class Gate implements Provider {
    readonly name = "gate";
    readonly model = "gate";
    readonly contextWindow = 1;
    readonly open: (() => void)[] = [];
    most = 0;
    #inside = 0;

    async complete(): Promise<ModelOutcome> {
      this.#inside += 1;
      this.most = Math.max(this.most, this.#inside);
      await new Promise<void>((resolve) => this.open.push(resolve));
      this.#inside -= 1;
      return { kind: "cancelled" };
    }
  }

  test("lets so many in, the rest in order, and refuses a crowd", async () => {
    const gate = new Gate();
    const limited = new LimitedProvider(gate, 2, 2);
    const done: number[] = [];
    const calls = [0, 1, 2, 3].map(async (index) => {
      await ask(limited, request);
      done.push(index);
    });
    await turn();
    expect(gate.open.length).toBe(2);
    expect(await ask(limited, request)).toMatchObject(failed("provider_rate_limited"));
    for (let index = 0; index < 4; index += 1) {
      gate.open[index]?.();
      await turn();
    }
    await Promise.all(calls);
    expect(done).toEqual([0, 1, 2, 3]);
    expect(gate.most).toBe(2);
  });

  test("who gives up leaves the line and no listener", async () => {
    const gate = new Gate();
    const limited = new LimitedProvider(gate, 1);
    const first = ask(limited, request);
    const controller = new AbortController();
    const second = ask(limited, request, controller.signal);
    const third = ask(limited, request);
    controller.abort();
    expect((await second).outcome).toEqual({ kind: "cancelled" });
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    gate.open[0]?.();
    await first;
    await turn();
    gate.open[1]?.();
    await third;
    expect(gate.open.length).toBe(2);
  });
});

describe("FallbackProvider", () => {
  test("asks the next one while nothing has been said", async () => {
    const [first, second] = [
      new ScriptedProvider([fail("provider_auth", { retryable: false })]),
      new ScriptedProvider([say("yes")]),
    ];
    expect(await ask(new FallbackProvider(first, second), request)).toMatchObject(answered("yes"));
  });

  test("not for a request that is wrong, nor once words are out; the first failure counts", async () => {
    const wrong = new ScriptedProvider([fail("context_too_long", { retryable: false })]);
    const begun = new ScriptedProvider([fail("provider_interrupted", { deltas: ["half"] })]);
    const other = new ScriptedProvider([fail("provider_timeout")]);
    expect(await ask(new FallbackProvider(wrong, other), request)).toMatchObject(failed("context_too_long"));
    expect(await ask(new FallbackProvider(begun, other), request)).toMatchObject(
      failed("provider_interrupted"),
    );
    expect(other.left).toBe(1);
    const down = new ScriptedProvider([fail("provider_unavailable")]);
    expect(await ask(new FallbackProvider(down, other), request)).toMatchObject(
      failed("provider_unavailable"),
    );
    expect(other.left).toBe(0);
  });
});

const setUp = (...steps: ScriptStep[]) => {
  const clock = new ManualClock();
  const inner = new ScriptedProvider(steps);
  const circuits = new Circuits(clock);
  return { clock, inner, circuits, provider: new CircuitProvider(inner, circuits.of("k", "mine")) };
};
const ill = (count: number): ScriptStep[] =>
  Array.from({ length: count }, () => fail("provider_unavailable"));

describe("CircuitProvider", () => {
  verifies("W63", "opens after five failures in a row, then lets one call probe", async () => {
    const { clock, inner, circuits, provider } = setUp(...ill(6), say("well"), say("again"));
    expect([circuits.healthy("mine"), circuits.healthy("other")]).toEqual([true, true]);
    for (let count = 0; count < 5; count += 1) await ask(provider, request);
    expect(await ask(provider, request)).toMatchObject({
      outcome: { failure: { code: "provider_unavailable", retryable: true, retryAfterSeconds: 5 } },
    });
    expect(inner.left).toBe(3);
    expect(circuits.healthy("mine")).toBe(false);
    await clock.advance(5_000);
    const [probe, other] = [ask(provider, request), ask(provider, request)];
    await Promise.all([probe, other]);
    expect(inner.left).toBe(2); // one probed, it failed, the time doubled
    await clock.advance(9_999);
    await ask(provider, request);
    expect(inner.left).toBe(2);
    await clock.advance(1);
    expect(await ask(provider, request)).toMatchObject(answered("well"));
    expect(await ask(provider, request)).toMatchObject(answered("again"));
  });

  test("our own mistakes, limits and cancellations do not count", async () => {
    const harmless = [
      "provider_rejected",
      "context_too_long",
      "provider_auth",
      "provider_rate_limited",
    ] as const;
    const { provider, inner } = setUp(
      ...harmless.flatMap((code) => [fail(code), fail(code)]),
      hang(),
      say("fine"),
    );
    for (let count = 0; count < 8; count += 1) await ask(provider, request);
    const controller = new AbortController();
    const cancelled = ask(provider, request, controller.signal);
    controller.abort();
    await cancelled;
    expect(await ask(provider, request)).toMatchObject(answered("fine"));
    expect(inner.left).toBe(0);
  });
});
