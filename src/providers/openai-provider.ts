import { randomBytes } from "node:crypto";
import type { ModelDelta, ModelOutcome, ModelRequest, Provider } from "../agent/provider.ts";
import { Deltas } from "./deltas.ts";
import { exchange, type ExchangeContext } from "./model-exchange.ts";
import type { Timeouts } from "./model-http.ts";
import { OpenAiAnswer } from "./openai-answer.ts";
import { OpenAiRequestWriter, type OpenAiDialect } from "./openai-request.ts";

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

/** `baseUrl` with `path` appended to its own path. */
export function endpoint(baseUrl: string, path: string): URL {
  const url = new URL(baseUrl);
  url.pathname = url.pathname.replace(/\/+$/, "") + path;
  return url;
}

/** The constant headers of a JSON call that wants a stream. */
export function requestHeaders(
  own: Readonly<Record<string, string>>,
  extra: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const lower = Object.entries(extra).map(([name, value]) => [name.toLowerCase(), value] as const);
  return {
    "content-type": "application/json",
    accept: "text/event-stream, application/json",
    "user-agent": "beamclaw",
    ...own,
    ...Object.fromEntries(lower),
  };
}

/** W3C Trace Context §3.2: the run's trace id with a span of its own; nothing where the id is not one. */
export function traceHeader(traceId: string): Readonly<Record<string, string>> {
  if (!/^(?!0{32})[0-9a-f]{32}$/.test(traceId)) return {};
  return { traceparent: `00-${traceId}-${randomBytes(8).toString("hex")}-01` };
}
