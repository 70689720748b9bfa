import type { ModelDelta, ModelOutcome, ModelRequest, Provider } from "../agent/provider.ts";
import { AnthropicAnswer } from "./anthropic-answer.ts";
import { anthropicBody } from "./anthropic-request.ts";
import { Deltas } from "./deltas.ts";
import { exchange, type ExchangeContext } from "./model-exchange.ts";
import type { Timeouts } from "./model-http.ts";
import { endpoint, requestHeaders, traceHeader } from "./provider-http.ts";

export interface AnthropicProviderOptions {
  /** Name of the entry; appears in failures. */
  readonly name: string;
  readonly model: string;
  /** For instance `https://api.anthropic.com`. */
  readonly baseUrl: string;
  readonly apiKey: string | null;
  /** Extra headers; they replace ours of the same name. */
  readonly headers: Readonly<Record<string, string>>;
  /** Tokens. */
  readonly contextWindow: number;
  readonly maxOutputTokens: number | undefined;
  readonly timeouts: Timeouts;
}

/** Anthropic's Messages API (version 2023-06-01), always streamed. */
export class AnthropicProvider implements Provider {
  readonly name: string;
  readonly model: string;
  readonly contextWindow: number;
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #timeouts: Timeouts;
  readonly #maxOutputTokens: number | undefined;
  readonly #context: ExchangeContext;

  constructor(options: AnthropicProviderOptions, context: Omit<ExchangeContext, "provider">) {
    this.name = options.name;
    this.model = options.model;
    this.contextWindow = options.contextWindow;
    this.#url = endpoint(options.baseUrl.replace(/\/v1\/*$/, ""), "/v1/messages");
    this.#headers = requestHeaders(
      {
        "anthropic-version": "2023-06-01",
        ...(options.apiKey !== null && { "x-api-key": options.apiKey }),
      },
      options.headers,
    );
    this.#timeouts = options.timeouts;
    this.#maxOutputTokens = options.maxOutputTokens;
    this.#context = { ...context, provider: options.name };
  }

  async complete(
    request: ModelRequest,
    onDelta: (delta: ModelDelta) => void,
    signal: AbortSignal,
  ): Promise<ModelOutcome> {
    const deltas = new Deltas(onDelta);
    const reader = new AnthropicAnswer(this.name, request, deltas, this.#context.scrub);
    const body = anthropicBody(this.model, request, this.#maxOutputTokens);
    const call = {
      url: this.#url,
      headers: { ...this.#headers, ...traceHeader(request.traceId) },
      body: Buffer.from(JSON.stringify(body)),
      timeouts: this.#timeouts,
    };
    return await exchange(call, reader, deltas, this.#context, signal);
  }
}
