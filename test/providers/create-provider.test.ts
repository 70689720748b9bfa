import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Circuits } from "../../src/providers/circuit-provider.ts";
import { contextWindowOf } from "../../src/providers/context-windows.ts";
import { createProvider, createProviders, type ProviderDeps } from "../../src/providers/create-provider.ts";
import { providerSlice, type ProviderEntry } from "../../src/providers/provider-config.ts";
import { modelBench } from "../support/model-bench.ts";
import { ask, modelRequest, tool } from "../support/model-request.ts";
import { verifies } from "../support/verifies.ts";

const { server, clock, http } = await modelBench();
const deps = (): ProviderDeps => ({
  clock,
  http,
  circuits: new Circuits(clock),
  random: () => 0,
  scrub: (text) => text.replaceAll("hush", "[REDACTED]"),
});
const entry = (rest: Record<string, unknown> = {}): ProviderEntry =>
  providerSlice().parse({ kind: "openai", baseUrl: `${server.origin}/v1`, model: "gpt-4o", ...rest });
const create = (rest: Record<string, unknown>, apiKey: string | null = "key-123") =>
  createProvider("mine", entry(rest), apiKey, deps());

describe("every setting is read", () => {
  test("model, key, headers, window, bound and dialect", async () => {
    const settings = {
      headers: { "X-Title": "me" },
      contextWindow: 9_000,
      maxOutputTokens: 77,
      systemMessages: "separate",
      maxTokensField: "max_completion_tokens",
    };
    const provider = create(settings);
    expect(provider).toMatchObject({ name: "mine", model: "gpt-4o", contextWindow: 9_000 });
    await ask(provider, modelRequest("hi", { system: ["a", "b"] }));
    expect(server.requests.at(-1)).toMatchObject({
      headers: { authorization: "Bearer key-123", "x-title": "me" },
      body: {
        model: "gpt-4o",
        max_completion_tokens: 77,
        messages: [{ role: "system" }, { role: "system" }, {}],
      },
    });
  });

  test("timeouts", async () => {
    const asked = ask(create({ timeouts: { firstByteMs: 1_000 }, retries: 0 }), modelRequest("!stall"));
    await server.nextRequest();
    await clock.advance(1_000);
    expect((await asked).outcome).toMatchObject({ failure: { message: "no answer from mine within 1 s" } });
  });

  test("retries and their time", async () => {
    const script = "!status code=500 times=1\n!say better";
    expect(await ask(create({ retries: 0 }), modelRequest(script))).toMatchObject({
      outcome: { kind: "failed" },
    });
    const other = "!status code=503 times=1 retry-after=5\n!say late";
    expect(await ask(create({ retrySeconds: 4 }), modelRequest(other))).toMatchObject({
      outcome: { kind: "failed" },
    });
    const third = "!status code=502 times=2\n!say better";
    const asked = ask(create({ retries: 2 }), modelRequest(third));
    const pausing = (): Promise<boolean> =>
      Promise.race([asked.then(() => false), clock.advance(0).then(() => true)]);
    while (await pausing()); // the pauses are of no length, but they are pauses
    expect(await asked).toMatchObject({ said: "better" });
  });

  test("concurrency", async () => {
    const provider = create({ concurrency: 1 });
    const controller = new AbortController();
    const stalled = ask(provider, modelRequest("!stall"), controller.signal);
    await server.nextRequest();
    const before = server.requests.length;
    const waiting = ask(provider, modelRequest("!say next"));
    await new Promise(setImmediate);
    expect(server.requests.length).toBe(before);
    controller.abort();
    await stalled;
    expect(await waiting).toMatchObject({ said: "next" });
  });

  verifies("W69", "tool calls in text are off unless the entry switches them on", async () => {
    const text = '<tool_call>{"name":"ls","arguments":{}}</tool_call>';
    const request = modelRequest(`!say ${text}`, { tools: [tool("ls")] });
    expect(await ask(create({}), request)).toMatchObject({ said: text, outcome: { answer: { calls: [] } } });
    expect(await ask(create({ textToolCalls: true }), request)).toMatchObject({
      said: "",
      outcome: { answer: { calls: [{ name: "ls" }] } },
    });
  });

  test("kind and its defaults", async () => {
    const demo = createProvider(
      "demo",
      providerSlice().parse({ kind: "demo", contextWindow: 5_000, wordMs: 0 }),
      null,
      deps(),
    );
    expect(demo).toMatchObject({ model: "demo", contextWindow: 5_000 });
    const claude = { kind: "anthropic", baseUrl: server.origin, model: "claude-sonnet-4-5" };
    const anthropic = createProvider("a", providerSlice().parse(claude), "k", deps());
    expect(await ask(anthropic, modelRequest("!say hi"))).toMatchObject({ said: "hi" });
    expect(server.requests.at(-1)).toMatchObject({ path: "/v1/messages", headers: { "x-api-key": "k" } });
  });

  test("wrong settings are refused", () => {
    for (const rest of [{ baseUrl: "ftp://x" }, { retries: -1 }, { modle: "x" }, { kind: "gemini" }]) {
      expect(providerSlice().safeParse({ ...entry(), ...rest }).success).toBe(false);
    }
  });
});

test("every setting is in the documentation, and no other", () => {
  const keys = providerSlice().options.flatMap(({ shape }) => Object.keys(shape));
  const table =
    readFileSync(new URL("../../docs/providers.md", import.meta.url), "utf8").split("\n## ")[1] ?? "";
  const documented = [...table.matchAll(/^\| `([a-zA-Z]+)/gm)].map((match) => match[1]);
  expect(new Set(documented)).toEqual(new Set(keys));
});

test("fallbacks are tried in order, unknown names and circles do no harm", async () => {
  const entries = {
    first: entry({
      headers: { "x-model-script": "!status code=500" },
      retries: 0,
      fallbacks: ["nobody", "second"],
    }),
    second: entry({ headers: { "x-model-script": "!say from the second" }, fallbacks: ["first"] }),
  };
  const providers = createProviders(entries, () => null, deps());
  expect(await ask(providers.get("first") ?? create({}), modelRequest("hi"))).toMatchObject({
    said: "from the second",
  });
});

test("entries share a circuit when credential, address and model are the same", async () => {
  const shared = deps();
  const broken = { headers: { "x-model-script": "!status code=500" }, retries: 0 };
  const one = createProvider("one", entry(broken), "k", shared);
  for (let count = 0; count < 5; count += 1) await ask(one, modelRequest("hi"));
  const before = server.requests.length;
  expect(await ask(createProvider("two", entry(), "k", shared), modelRequest("hi"))).toMatchObject({
    outcome: { failure: { code: "provider_unavailable" } },
  });
  expect(server.requests.length).toBe(before);
  expect(await ask(createProvider("three", entry(), "other", shared), modelRequest("hi"))).toMatchObject({
    outcome: { kind: "answered" },
  });
});

verifies("W20", "a failure shows neither the key nor other secrets of the provider's words", async () => {
  const script = "!status code=400 bad key-123 or hush";
  const { outcome } = await ask(create({}), modelRequest(script));
  expect(outcome).toMatchObject({ failure: { code: "provider_rejected" } });
  expect(JSON.stringify(outcome)).toContain("[REDACTED]");
  expect(JSON.stringify(outcome)).not.toMatch(/key-123|hush/);
  const auth = await ask(create({}), modelRequest("!status code=401 Incorrect API key: key-1*3"));
  expect(JSON.stringify(auth.outcome)).not.toContain("key-1*3");
});

test.each([
  ["anthropic/claude-sonnet-4-5", 200_000],
  ["claude-sonnet-4-5", 200_000],
  ["gpt-4o-mini", 128_000],
  ["openai/gpt-4.1", 1_047_576],
  ["moonshotai/kimi-k2", 256_000],
  ["google/gemini-3-pro", 1_000_000],
  ["deepseek/deepseek-chat", 128_000],
  ["never/heard-of", 128_000],
])("window of %s is %d", (model, tokens) => {
  expect(contextWindowOf(model)).toBe(tokens);
});
