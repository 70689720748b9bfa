import { CodedError, type ErrorEntry } from "../kernel/errors.ts";

const entry = (status: number, retryable: boolean, cure: string, exit = 1): ErrorEntry => ({
  status,
  retryable,
  exit,
  cure,
});

/** Every code that a person or a client can meet. `docs/errors.md` lists them; a test compares both ways. */
export const errorCatalogue = {
  // What the caller sent
  invalid_json: entry(400, false, "Send a JSON object."),
  invalid_request: entry(400, false, "Correct the named field."),
  body_too_large: entry(413, false, "Send less, or raise gateway.bodyLimitBytes."),
  unauthorized: entry(401, false, "Send `Authorization: Bearer TOKEN`; `beamclaw token create` makes one."),
  forbidden: entry(403, false, "Use a token that has the named scope."),
  foreign_origin: entry(403, false, "Name it in gateway.cors.origins or gateway.hosts if it is yours."),
  not_found: entry(404, false, "Check the path and the id."),
  method_not_allowed: entry(405, false, "Use a method from the Allow header."),
  rate_limited: entry(429, true, "Wait for Retry-After."),
  idempotency_conflict: entry(409, false, "Use a new Idempotency-Key for a new body."),
  approval_decided: entry(409, false, "The question was answered before; look at its state."),
  run_ended: entry(409, false, "The run has ended; nothing is left to cancel."),
  session_busy: entry(409, true, "Wait until the session's run has ended, or cancel it."),
  agent_not_found: entry(404, false, "`beamclaw agent list` shows the agents."),
  agent_exists: entry(409, false, "Choose another name, or rehatch the agent."),
  agent_protected: entry(409, false, "The default agent stays; rehatch it instead."),
  token_exists: entry(409, false, "Choose another name, or revoke the token first."),
  // Limits of the daemon
  queue_full: entry(429, true, "Wait for the session's runs to finish."),
  overloaded: entry(503, true, "Wait for Retry-After."),
  shutting_down: entry(503, true, "The daemon stops; try again after it is back."),
  store_unavailable: entry(503, true, "Check the disk under BEAMCLAW_HOME; the daemon recovers with it."),
  // The model's side
  provider_unavailable: entry(503, true, "The model's API did not answer; try again."),
  provider_rate_limited: entry(503, true, "The model's API limits requests; wait for Retry-After."),
  provider_rejected: entry(502, false, "The model's API refused the request; read its reason."),
  provider_auth: entry(502, false, "The model's API refused the key; check the provider's apiKey."),
  provider_bad_answer: entry(502, true, "The model's API answered something unreadable; try again."),
  provider_interrupted: entry(502, true, "The model's answer broke off; what came is kept. Try again."),
  provider_timeout: entry(504, true, "The model's API took too long; try again."),
  context_too_long: entry(400, false, "The conversation exceeds the model's window; reset the session."),
  // How a run may end
  turn_timeout: entry(504, false, "The turn exceeded loop.turnSeconds."),
  tool_loop: entry(502, false, "The agent repeated itself; rephrase the request."),
  interrupted: entry(503, true, "The daemon stopped in the middle; send the request again."),
  quarantined: entry(500, false, "The session crashed repeatedly; look at the log, then reset the session."),
  // The process
  configuration: entry(500, false, "Correct the named configuration keys.", 78),
  daemon_unreachable: entry(503, true, "Start it with `beamclaw start`.", 69),
  daemon_running: entry(409, false, "Stop it first: `beamclaw stop`."),
  usage: entry(400, false, "See `beamclaw help`.", 2),
  internal: entry(500, false, "This is a defect; the log has the details under the request id."),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errorCatalogue;

/** An error with a code of the catalogue. */
export class BeamclawError extends CodedError<ErrorCode> {
  get entry(): ErrorEntry {
    return errorCatalogue[this.code];
  }
}
