import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import type { ModelFailure, ModelRequest, Provider } from "../../src/agent/provider.ts";
import type { ManualClock } from "../../src/kernel/clock.ts";
import { ask } from "../support/model-request.ts";
import { verifies } from "../support/verifies.ts";

/** Something that happens at the model's end; each adapter stages it in its own way. */
export const faultScenes = {
  rate_limited: { code: "provider_rate_limited", started: false, retryAfterSeconds: 7 },
  server_error: { code: "provider_unavailable", started: false },
  error_object: { code: "provider_unavailable", started: false },
  reset_before_first_byte: { code: "provider_unavailable", started: false },
  reset_mid_stream: { code: "provider_interrupted", started: true },
  stall_before_first_byte: { code: "provider_timeout", started: false },
  stall_mid_stream: { code: "provider_timeout", started: true },
  malformed_event: { code: "provider_bad_answer", started: false },
  not_json: { code: "provider_bad_answer", started: false },
  no_choices: { code: "provider_bad_answer", started: false },
  unfinished: { code: "provider_interrupted", started: true },
} as const satisfies Record<string, Pick<ModelFailure, "code" | "started" | "retryAfterSeconds">>;

export type FaultScene = keyof typeof faultScenes;
export type Scene = "text" | "empty" | "cut" | "calls" | "silent" | "hangs" | FaultScene;

export interface Staged {
  readonly provider: Provider;
  readonly request: ModelRequest;
  /** Resolves once the model's end has the request. */
  readonly received: Promise<unknown>;
  /** The clock of the provider's deadlines. */
  readonly clock: ManualClock;
}

export interface Subject {
  readonly name: string;
  /** Null: this adapter cannot get into the scene. */
  stage(scene: Scene): Staged | null;
}

/** Says this in the scenes `text` and `cut`; every character length in UTF-8 is there. */
export const spoken = "Grüße aus Köln: 你好, 😀👍 and plain words";

/** What every adapter of the Provider port does. `hangs` says something first, `silent` nothing. */
export function providerSuite(subject: Subject): void {
  const scene = (name: string, which: Scene, body: (staged: Staged) => Promise<void>): void => {
    test.skipIf(subject.stage(which) === null)(`${subject.name}: ${name}`, async () => {
      await checkScene(subject, which, body);
    });
  };

  describe(`port Provider: ${subject.name}`, () => {
    scene("deltas add up to the answer's text", "text", async ({ provider, request }) => {
      const { outcome, said, deltas } = await ask(provider, request);
      expect(outcome).toMatchObject({
        kind: "answered",
        answer: { text: said, calls: [], finishReason: "stop" },
      });
      expect(deltas.length).toBeGreaterThan(2);
      if (provider.name !== "demo") expect(said).toBe(spoken);
    });

    scene("bytes cut inside characters", "cut", async ({ provider, request }) => {
      expect(await ask(provider, request)).toMatchObject({
        said: spoken,
        outcome: { answer: { text: spoken } },
      });
    });

    scene("an empty answer is an answer", "empty", async ({ provider, request }) => {
      const { outcome, deltas } = await ask(provider, request);
      expect(outcome).toMatchObject({
        kind: "answered",
        answer: { text: "", calls: [], finishReason: "stop" },
      });
      expect(deltas).toEqual([]);
    });

    scene("several tool calls in one answer", "calls", async ({ provider, request }) => {
      const { outcome } = await ask(provider, request);
      if (outcome.kind !== "answered") throw new Error(`ended ${outcome.kind}`);
      const { calls, finishReason } = outcome.answer;
      expect(finishReason).toBe("tool_calls");
      expect(calls.map(({ name }) => name)).toEqual(["terminal", "read_file"]);
      expect(calls.map((call) => JSON.parse(call.arguments) as unknown)).toEqual([
        { command: "ls" },
        { path: "notes.txt" },
      ]);
      expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
    });

    scene("aborted before it begins", "text", async ({ provider, request }) => {
      expect(await ask(provider, request, AbortSignal.abort())).toMatchObject({
        outcome: { kind: "cancelled" },
        deltas: [],
      });
    });

    scene("aborted while nothing has come", "silent", async ({ provider, request, received }) => {
      const controller = new AbortController();
      const asked = ask(provider, request, controller.signal);
      await received;
      controller.abort();
      expect(await asked).toMatchObject({ outcome: { kind: "cancelled" }, deltas: [] });
      expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    });

    scene("aborted in the middle", "hangs", async ({ provider, request }) => {
      const controller = new AbortController();
      let said = "";
      const outcome = await provider.complete(
        request,
        (delta) => {
          said += delta.text;
          controller.abort();
        },
        controller.signal,
      );
      expect(outcome).toEqual({ kind: "cancelled" });
      expect(said).not.toBe("");
      expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    });

    scene("no listener stays on the signal", "text", async ({ provider, request }) => {
      const { signal } = new AbortController();
      await ask(provider, request, signal);
      expect(getEventListeners(signal, "abort")).toEqual([]);
    });

    for (const [name, wanted] of Object.entries(faultScenes) as [
      FaultScene,
      (typeof faultScenes)[FaultScene],
    ][]) {
      if (subject.stage(name) === null) continue;
      verifies(["W5", "W63"], `${subject.name}: ${name} is ${wanted.code}`, async () => {
        await checkScene(subject, name, (staged) => checkFault(staged, name, wanted));
      });
    }
  });
}

async function checkScene(
  subject: Subject,
  which: Scene,
  body: (staged: Staged) => Promise<void>,
): Promise<void> {
  const staged = subject.stage(which);
  if (staged === null) throw new Error(`${subject.name} has no scene ${which}`);
  await body(staged);
}

async function checkFault(
  { provider, request, received, clock }: Staged,
  name: FaultScene,
  wanted: Pick<ModelFailure, "code" | "started" | "retryAfterSeconds">,
): Promise<void> {
  const { signal } = new AbortController();
  const started = Promise.withResolvers<void>();
  let said = "";
  const asked = provider.complete(
    request,
    ({ text }) => {
      said += text;
      started.resolve();
    },
    signal,
  );
  if (name.startsWith("stall")) {
    await (wanted.started ? started.promise : received);
    await clock.advance(120_000);
  }
  const outcome = await asked;
  expect(outcome).toMatchObject({ kind: "failed", failure: { ...wanted, retryable: true, partial: said } });
  expect(said !== "").toBe(wanted.started);
  expect(getEventListeners(signal, "abort")).toEqual([]);
}
