import type { ModelDelta, ModelOutcome, ModelRequest, Provider } from "../agent/provider.ts";
import { Deltas } from "./deltas.ts";
import { exchange, type ExchangeContext } from "./model-exchange.ts";
import type { Timeouts } from "./model-http.ts";
import { OpenAiAnswer } from "./openai-answer.ts";
import { OpenAiRequestWriter, type OpenAiDialect } from "./openai-request.ts";
import { endpoint, requestHeaders, traceHeader } from "./provider-http.ts";

export interface OpenAiProviderOptions extends OpenAiDialect {
  /** Name of the entry; appears in failures. */
  readonly name: string;
  /** With its version path, for instance `https://api.openai.com/v1`; a query stays. */
  readonly baseUrl: string;
  /** Null for servers that want none. */
  readonly apiKey: string | null;
  /** Extra headers; they replace ours of the same name. */
  readonly headers: Readonly<Record<string, string>>;
  /** Tokens. */
  readonly contextWindow: number;
  readonly timeouts: Timeouts;
}

/** Any API that speaks OpenAI's chat completions, always streamed. */
export class OpenAiProvider implements Provider {
  readonly name: string;
  readonly model: string;
  readonly contextWindow: number;
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #timeouts: Timeouts;
  readonly #writer: OpenAiRequestWriter;
  readonly #context: ExchangeContext;

  constructor(options: OpenAiProviderOptions, context: Omit<ExchangeContext, "provider">) {
    this.name = options.name;
    this.model = options.model;
    this.contextWindow = options.contextWindow;
    this.#url = endpoint(options.baseUrl, "/chat/completions");
    this.#headers = requestHeaders(
      options.apiKey === null ? {} : { authorization: `Bearer ${options.apiKey}` },
      options.headers,
    );
    this.#timeouts = options.timeouts;
    this.#writer = new OpenAiRequestWriter(options);
    this.#context = { ...context, provider: options.name };
  }

  async complete(
    request: ModelRequest,
    onDelta: (delta: ModelDelta) => void,
    signal: AbortSignal,
  ): Promise<ModelOutcome> {
    const deltas = new Deltas(onDelta);
    const reader = new OpenAiAnswer(this.name, request, deltas, this.#context.scrub);
    const call = {
      url: this.#url,
      headers: { ...this.#headers, ...traceHeader(request.traceId) },
      body: this.#writer.write(request),
      timeouts: this.#timeouts,
    };
    return await exchange(call, reader, deltas, this.#context, signal);
  }
}
