import type { Provider } from "../../src/agent/provider.ts";
import { DemoProvider } from "../../src/providers/demo-provider.ts";
import { fail, hang, ScriptedProvider, type ScriptStep } from "../../src/providers/scripted-provider.ts";
import { modelBench } from "../support/model-bench.ts";
import { modelRequest, tool } from "../support/model-request.ts";
import { providerSuite, spoken, type Scene, type Staged, type Subject } from "./provider-suite.ts";

const { server, clock, openai, anthropic } = await modelBench();
const tools = [tool("terminal"), tool("read_file")];

/** How the model server is told to play each scene; the script is the user's message. */
const scripts: Record<Scene, string> = {
  text: `!say ${spoken}`,
  empty: "!nothing",
  cut: `!cut ${spoken}`,
  calls: '!call terminal {"command":"ls"}\n!call read_file {"path":"notes.txt"}',
  silent: "!stall",
  hangs: "!stall after=2",
  rate_limited: "!status code=429 retry-after=7",
  server_error: "!status code=500",
  error_object: "!error upstream died",
  reset_before_first_byte: "!reset",
  reset_mid_stream: "!reset after=2",
  stall_before_first_byte: "!stall",
  stall_mid_stream: "!stall after=2",
  malformed_event: "!malformed",
  not_json: "!html",
  no_choices: "!empty",
  unfinished: "!nofinish some words",
};

const overHttp = (name: string, provider: Provider): Subject => ({
  name,
  stage: (scene) => ({
    provider,
    request: modelRequest(scripts[scene], { tools }),
    received: server.nextRequest(),
    clock,
  }),
});

providerSuite(overHttp("OpenAiProvider", openai()));
providerSuite(overHttp("AnthropicProvider", anthropic()));

providerSuite({
  name: "DemoProvider",
  stage(scene) {
    const words: Partial<Record<Scene, string>> = {
      text: "hi",
      calls: "run `ls` and read notes.txt",
      silent: "hi",
      hangs: "count to 1000",
    };
    const asked = words[scene];
    if (asked === undefined) return null;
    const wordMs = scene === "silent" ? 1_000 : 0;
    const provider = new DemoProvider({ name: "demo", wordMs, contextWindow: 128_000 }, clock);
    return staged(provider, asked);
  },
});

providerSuite({
  name: "ScriptedProvider",
  stage(scene) {
    const steps: Partial<Record<Scene, ScriptStep>> = {
      text: { deltas: spoken.split(/(?<= )/) },
      empty: {},
      calls: {
        calls: [
          { id: "a", name: "terminal", arguments: '{"command":"ls"}' },
          { id: "b", name: "read_file", arguments: '{"path":"notes.txt"}' },
        ],
      },
      silent: hang(),
      hangs: hang("some", " words"),
      rate_limited: fail("provider_rate_limited", { retryAfterSeconds: 7 }),
      server_error: fail("provider_unavailable"),
      reset_mid_stream: fail("provider_interrupted", { deltas: ["some", " words"] }),
    };
    const step = steps[scene];
    return step === undefined ? null : staged(new ScriptedProvider([step]), "go");
  },
});

const staged = (provider: Provider, asked: string): Staged => ({
  provider,
  request: modelRequest(asked, { tools }),
  received: Promise.resolve(),
  clock,
});
