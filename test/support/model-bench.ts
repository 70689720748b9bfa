import { afterAll } from "vitest";
import { ManualClock } from "../../src/kernel/clock.ts";
import { AnthropicProvider, type AnthropicProviderOptions } from "../../src/providers/anthropic-provider.ts";
import { ModelHttp } from "../../src/providers/model-http.ts";
import { OpenAiProvider, type OpenAiProviderOptions } from "../../src/providers/openai-provider.ts";
import { startModelServer, type ModelServer } from "./model-server.ts";

/** A model server and providers that talk to it, for one test file. Deadlines follow `clock`. */
export interface ModelBench {
  readonly server: ModelServer;
  readonly clock: ManualClock;
  readonly http: ModelHttp;
  readonly openai: (options?: Partial<OpenAiProviderOptions>) => OpenAiProvider;
  readonly anthropic: (options?: Partial<AnthropicProviderOptions>) => AnthropicProvider;
}

export async function modelBench(): Promise<ModelBench> {
  const server = await startModelServer();
  const clock = new ManualClock();
  const http = new ModelHttp(clock);
  afterAll(async () => {
    await http.close();
    await server.close();
  });
  const context = { http, clock, scrub: (text: string) => text };
  const remote = {
    name: "remote",
    model: "m",
    apiKey: "test-key",
    headers: {},
    contextWindow: 128_000,
    maxOutputTokens: undefined,
    timeouts: { connectMs: 10_000, firstByteMs: 60_000, idleMs: 60_000 },
  };
  return {
    server,
    clock,
    http,
    openai: (options) =>
      new OpenAiProvider(
        {
          ...remote,
          baseUrl: `${server.origin}/v1`,
          systemMessages: "merged",
          maxTokensField: "max_tokens",
          ...options,
        },
        context,
      ),
    anthropic: (options) => new AnthropicProvider({ ...remote, baseUrl: server.origin, ...options }, context),
  };
}
