import type { BusinessEvents } from "../../../src/obs/events.ts";

const run = {
  session_id: "session-0123456789abcdef0123456789abcdef",
  run_id: "0190a0b0-7c6e-7cc3-98c4-dc0c0c07398f",
  trace_id: "0190a0b07c6e7cc398c4dc0c0c07398f",
};
const call = { ...run, tool_name: "bash", call_id: "call_1" };
const model = { ...run, provider: "openai", model: "gpt-x" };
const usage = { promptTokens: 12, completionTokens: 3, cachedTokens: 2, reasoningTokens: 1 };
const answer = { duration_ms: 20, first_token_ms: 5, success: true, error: null, usage };

/** What a person, a model or a provider said; it must not show in a log at level info. */
export const spoken = "the quick brown fox";

type Fields = { readonly [E in keyof BusinessEvents]: Parameters<BusinessEvents[E]>[0] };
type Calls = { readonly [E in keyof Fields]: readonly Fields[E][] };
type Raisers = { readonly [E in keyof Fields]: (fields: Fields[E]) => void };

/** Each event with arguments of every kind that it takes. A new event does not compile until it is here. */
const calls: Calls = {
  sessionStart: [{ session_id: run.session_id }],
  sessionEnd: [{ session_id: run.session_id, reason: "idle" }],
  sessionRestored: [{ session_id: run.session_id, message_count: 4 }],
  sessionReset: [{ session_id: run.session_id }],
  agentStart: [{ ...run, user_id: "local:alice" }],
  runQueued: [{ session_id: run.session_id, run_id: run.run_id }],
  runRefused: [{ reason: "queue_full" }],
  llmRequest: [{ ...model, message_count: 7 }],
  llmResponse: [
    { ...model, ...answer },
    { ...model, ...answer, first_token_ms: null, success: false, error: "provider_timeout", usage: null },
  ],
  toolCallStart: [{ ...call, args: JSON.stringify({ command: spoken }) }],
  toolCallResult: [{ ...call, duration_ms: 9, success: false }],
  turnComplete: [{ ...run, total_duration_ms: 99, outcome: "completed", error: null }],
  compactionComplete: [{ ...run, before: 50, after: 20 }],
  approvalRequested: [{ ...run, approval_id: "a1", tool_name: "bash", args: `{"command":"${spoken}"}` }],
  approvalResolved: [{ ...run, approval_id: "a1", tool_name: "bash", decision: "approve" }],
  childExit: [
    {
      supervisor: "root",
      child: "http",
      reason: "crashed",
      error: {
        name: "SyntaxError",
        code: "E_JSON",
        message: `Unexpected token 'h', "${spoken}" is not valid JSON`,
        stack: `SyntaxError: Unexpected token 'h', "${spoken}" is not valid JSON\n    at parse (src/a.ts:1:2)`,
      },
      restarts: 1,
      willRestart: true,
    },
    { supervisor: "run 42", child: "loop", reason: "abandoned", restarts: 0, willRestart: false },
  ],
  storeTrouble: [{ error: "database is locked" }],
  defect: [{ where: "gateway", error: "x is undefined", stack: `Error: ${spoken}\n    at f (src/b.ts:3:4)` }],
  httpRequest: [
    { request_id: "r1", method: "GET", route: "/health", status: 200, duration_ms: 1, token: "laptop" },
  ],
  requestRefused: [{ request_id: "r2", code: "unauthorized", address: "127.0.0.1", token: null }],
  lag: [{ p50: 1, p99: 20, max: 300 }],
};

/** Raises every event in every variant. */
export function raiseAll(events: BusinessEvents): void {
  for (const name of eventNames) raise(events, name);
}

export const eventNames = Object.keys(calls).filter((name): name is keyof Calls => name in calls);

function raise<E extends keyof Fields>(raisers: Raisers, name: E): void {
  const event: Raisers[E] = raisers[name];
  for (const fields of calls[name]) event(fields);
}
