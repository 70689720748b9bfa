import { createHash } from "node:crypto";
import type { FastifyRequest } from "fastify";
import type { SubmitRequest } from "../agent/conversations.ts";
import type { RunInput } from "../domain/run.ts";
import type { IdempotencyKey } from "../store/ports.ts";
import { type Caller, may } from "./caller.ts";
import { statefulMessages, statelessMessages } from "./chat-input.ts";
import type { ChatRequest } from "./chat-request.ts";
import { invalid } from "./errors.ts";
import { type Conversation, resolveConversation } from "./identity.ts";
import { callerOf, headerText, rawBodyOf } from "./request.ts";
import type { RouteDeps } from "./route.ts";

/** Part of the key under which an Idempotency-Key is kept. */
const ROUTE = "POST /v1/chat/completions";
const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/** What a chat request asks of the conversations. Throws what the caller did wrong: 400, 403, 404. */
export async function submissionOf(
  deps: RouteDeps,
  request: FastifyRequest,
  body: ChatRequest,
): Promise<SubmitRequest> {
  const caller = callerOf(request);
  const naming = {
    agent: body.agent,
    session: headerText(request, "x-session-id") ?? body.session,
    user: headerText(request, "x-user-id") ?? body.user,
  };
  const conversation = await resolveConversation(deps, caller, naming);
  return {
    ...conversation,
    channel: caller.door === "local" ? "socket" : "http",
    input: await inputOf(deps, caller, conversation, body),
    idempotency: idempotencyOf(request, caller, conversation),
    mayDecide: may(caller, "approvals"),
  };
}

async function inputOf(
  deps: RouteDeps,
  caller: Caller,
  { sessionId, principal }: Conversation,
  body: ChatRequest,
): Promise<RunInput> {
  const stateful = sessionId !== null;
  const { messages, system } = stateful
    ? statefulMessages(body.messages, await deps.store.sessions.openClientCalls(sessionId))
    : await statelessMessages(body.messages, { steps: deps.store.steps, principal, at: deps.clock.now() });
  return {
    messages,
    system,
    options: body.options,
    clientTools: body.tools,
    origin: {
      channel: caller.door === "local" ? "socket" : "http",
      token: caller.token,
      interactive: stateful,
      // Nobody can be asked in a stateless request, so effects need the token's standing permission.
      effects: stateful || may(caller, "tools"),
    },
  };
}

/** The hash covers the headers that say whom the request is for, too: another person's retry is another request. */
function idempotencyOf(
  request: FastifyRequest,
  caller: Caller,
  { sessionId, principal }: Conversation,
): IdempotencyKey | null {
  const key = request.headers["idempotency-key"];
  if (key === undefined || key === "") return null;
  if (typeof key !== "string" || !IDEMPOTENCY_KEY.test(key)) {
    throw invalid("idempotency-key", "1 to 255 printable ASCII characters");
  }
  const hash = createHash("sha256").update(`${principal}\u0000${sessionId ?? ""}\u0000`);
  return {
    token: caller.token ?? "",
    route: ROUTE,
    key,
    bodyHash: hash.update(rawBodyOf(request)).digest("hex"),
  };
}
