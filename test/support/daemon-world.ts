/**
 * A daemon process between two worlds that tests control: the model's API before it and the world of effects
 * behind its tools. What the user says is the model's script (`model-script.ts`), so a conversation plays the
 * same before and after a restart.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chunksOf, contentOf, framesOf, SseClient } from "../gateway/sse-client.ts";
import { DaemonProcess } from "./daemon-process.ts";
import { type ModelServer, startModelServer } from "./model-server.ts";
import { OutsideWorld } from "./outside-world.ts";

export type Json = { readonly [key: string]: unknown };

/** Settings of the provider beside those that lead to the model server. */
export interface WorldOptions {
  readonly config?: Json;
  readonly provider?: Json;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Request {
  readonly headers?: Readonly<Record<string, string>>;
  /** Members of the body beside the messages. */
  readonly body?: Json;
  readonly token?: string;
}

/** What a client sees of one request, streamed or not. */
export interface Outcome {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly finish: string | null;
  readonly approval: string | null;
  readonly calls: readonly { readonly id: string; readonly function: { readonly name: string } }[];
  /** Code of the error, in the body or in a frame. */
  readonly error: string | null;
}

export class DaemonWorld implements AsyncDisposable {
  readonly home: string;
  readonly model: ModelServer;
  readonly outside: OutsideWorld;
  readonly #options: WorldOptions;
  #daemon: DaemonProcess | null = null;

  private constructor(options: WorldOptions, model: ModelServer, outside: OutsideWorld) {
    this.home = mkdtempSync(join(tmpdir(), "beamclaw-world-"));
    this.#options = options;
    this.model = model;
    this.outside = outside;
  }

  static async open(options: WorldOptions = {}): Promise<DaemonWorld> {
    const world = new DaemonWorld(options, await startModelServer(), await OutsideWorld.open());
    await world.start();
    return world;
  }

  get daemon(): DaemonProcess {
    if (this.#daemon === null) throw new Error("the daemon is not running");
    return this.#daemon;
  }

  /** Starts a daemon in this world's home; `config` replaces what the last one had. */
  async start(config: Json = this.config()): Promise<void> {
    this.#daemon = await DaemonProcess.start({
      home: this.home,
      config: JSON.stringify(config), // JSON is YAML
      ...(this.#options.env !== undefined && { env: this.#options.env }),
    });
  }

  /** Kills the daemon on the spot and starts the next one in the same home. */
  async crash(): Promise<void> {
    await this.daemon.kill();
    await this.start();
  }

  config(): Json {
    const { config = {}, provider = {} } = this.#options;
    const scripted = {
      kind: "openai",
      baseUrl: `${this.model.origin}/v1`,
      apiKey: null,
      model: "scripted",
      ...provider,
    };
    return {
      provider: "scripted",
      providers: { scripted },
      tools: {
        http: { allowPrivate: true, ports: [this.outside.port] },
        shell: { sandbox: "off" }, // the effects have to leave the workspace
      },
      ...config,
    };
  }

  /** Says something in a conversation and waits for the whole answer. */
  async say(session: string, text: string, request: Request = {}): Promise<Outcome> {
    return readJson(await this.post(session, text, request));
  }

  /** The same, streamed. Throws if the stream does not end in exactly one way. */
  async stream(session: string, text: string, request: Request = {}): Promise<Outcome> {
    const body = { stream: true, ...request.body };
    return readStream(await this.post(session, text, { ...request, body }));
  }

  /** Says something and returns the frames as they come; status 200 is checked. */
  async open(session: string, text: string, request: Request = {}): Promise<SseClient> {
    const body = { stream: true, ...request.body };
    const response = await this.post(session, text, { ...request, body });
    if (response.status !== 200) throw new Error(`status ${response.status}: ${await response.text()}`);
    return new SseClient(response);
  }

  post(session: string, text: string, { headers, body, token }: Request = {}): Promise<Response> {
    return this.daemon.request("/v1/chat/completions", {
      method: "POST",
      headers: { "content-type": "application/json", "x-session-id": session, ...headers },
      body: JSON.stringify({ model: "beamclaw", messages: [{ role: "user", content: text }], ...body }),
      ...(token !== undefined && { token }),
    });
  }

  async get(path: string): Promise<Json> {
    const response = await this.daemon.request(path);
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Json;
  }

  async list(path: string): Promise<readonly Json[]> {
    return (await this.get(path))["data"] as readonly Json[];
  }

  async decide(approval: string, decision: string): Promise<Response> {
    return this.daemon.request(`/v1/approvals/${approval}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ decision }),
    });
  }

  /** The events of a run from a position on, until the stream ends. */
  async events(run: string, after?: number): Promise<readonly Json[]> {
    const sse = await this.watch(run, after);
    return (await sse.all()).flatMap(eventOf);
  }

  async watch(run: string, after?: number): Promise<SseClient> {
    const headers = after === undefined ? {} : { "last-event-id": String(after) };
    return new SseClient(await this.daemon.request(`/v1/runs/${run}/events`, { headers }));
  }

  /** Resolves with the run once it is in one of these states; follows its events, so nothing is polled. */
  async reached(run: string, ...states: readonly string[]): Promise<Json> {
    const sse = await this.watch(run);
    for (;;) {
      const found = await this.get(`/v1/runs/${run}`);
      if (states.includes(String(found["state"]))) {
        await sse.close();
        return found;
      }
      if ((await sse.next()) === null) throw new Error(`the run ended as ${String(found["state"])}`);
    }
  }

  /** What a session's history holds, as `role: text`. */
  async history(session: string): Promise<readonly string[]> {
    const messages = await this.list(`/v1/sessions/${session}/messages?limit=200`);
    return messages.map(({ role, content }) => `${String(role)}: ${String(content)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#daemon?.kill();
    await Promise.all([this.model.close(), this.outside[Symbol.asyncDispose]()]);
    rmSync(this.home, { recursive: true, force: true });
  }
}

export async function readJson(response: Response): Promise<Outcome> {
  const body = (await response.json()) as {
    readonly choices?: readonly {
      readonly message: { readonly content: string | null; readonly tool_calls?: Outcome["calls"] };
      readonly finish_reason: string;
    }[];
    readonly approval_id?: string;
    readonly error?: { readonly code: string };
  };
  const [choice] = body.choices ?? [];
  return {
    status: response.status,
    headers: response.headers,
    text: choice?.message.content ?? "",
    finish: choice?.finish_reason ?? null,
    approval: body.approval_id ?? null,
    calls: choice?.message.tool_calls ?? [],
    error: body.error?.code ?? null,
  };
}

export async function readStream(response: Response): Promise<Outcome> {
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return readJson(response);
  const frames = framesOf(await response.text()).filter((frame) => !frame.startsWith(":"));
  const { chunks, done } = chunksOf(frames);
  const errors = chunks.filter((chunk) => chunk.error !== undefined);
  const said = chunks.filter((chunk) => chunk.error === undefined);
  const ends = Number(done) + errors.length;
  const isLast = done || chunks.at(-1)?.error !== undefined;
  if (ends !== 1 || !isLast) throw new Error(`a stream must end in exactly one way:\n${frames.join("\n")}`);
  return {
    status: response.status,
    headers: response.headers,
    text: contentOf(said),
    finish: said.findLast((chunk) => chunk.choices[0]?.finish_reason)?.choices[0]?.finish_reason ?? null,
    approval: said.findLast((chunk) => chunk.approval_id !== undefined)?.approval_id ?? null,
    calls: said.flatMap((chunk) => (chunk.choices[0]?.delta.tool_calls ?? []) as Outcome["calls"]),
    error: errors[0]?.error?.code ?? null,
  };
}

/** The event in a frame; none in a comment. */
export function eventOf(frame: string): readonly Json[] {
  const data = /^data: (.*)$/m.exec(frame)?.[1];
  return data === undefined ? [] : [JSON.parse(data) as Json];
}
