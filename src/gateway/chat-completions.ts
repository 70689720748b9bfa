import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import type { Ending, LiveRun } from "../agent/live-run.ts";
import type { Submitted } from "../agent/conversations.ts";
import { BeamclawError } from "../domain/error-catalogue.ts";
import { isEnded, type Run } from "../domain/run.ts";
import { toError } from "../kernel/errors.ts";
import { completionOf, type Outcome, outcomeOf } from "./chat-objects.ts";
import { parseChatRequest } from "./chat-request.ts";
import { ChatStream, StreamCrowd } from "./chat-stream.ts";
import { submissionOf } from "./chat-submission.ts";
import { endFailure } from "./errors.ts";
import type { Route, RouteDeps } from "./route.ts";
import type { HeaderFields } from "./sse.ts";

interface ChatDeps extends RouteDeps {
  readonly crowd: StreamCrowd;
}

/** `POST /v1/chat/completions`: accepts one run and follows it until it ends or asks. */
export function chatRoutes(routeDeps: RouteDeps): readonly Route[] {
  const deps = { ...routeDeps, crowd: new StreamCrowd() };
  const handle: Route["handle"] = async (request, reply) => {
    const body = parseChatRequest(request.body);
    const submission = await submissionOf(deps, request, body);
    const submitted = await deps.conversations.submit(submission);
    if (submitted.kind === "refused") throw refusal(submitted);
    const following = await follow(deps, submitted);
    const answer = { deps, following, mayDecide: submission.mayDecide };
    if (body.stream) stream(answer, reply, body.includeUsage);
    else await respond(answer, reply);
    return reply;
  };
  return [
    { method: "POST", url: "/v1/chat/completions", scopes: ["chat"], refusedWhileDraining: true, handle },
  ];
}

function refusal(refused: Extract<Submitted, { kind: "refused" }>): BeamclawError {
  return new BeamclawError(refused.code, refused.message, {
    ...(refused.retryAfterSeconds !== undefined && { retryAfterSeconds: refused.retryAfterSeconds }),
  });
}

/** A run to be followed; at least one of `live` and `ending` is there. */
interface Following {
  readonly run: Run;
  readonly live: LiveRun | null;
  readonly ending: Ending | null;
}

interface Answer {
  readonly deps: ChatDeps;
  readonly following: Following;
  readonly mayDecide: boolean;
}

async function follow(
  deps: ChatDeps,
  submitted: Exclude<Submitted, { kind: "refused" }>,
): Promise<Following> {
  const { run } = submitted;
  const live = submitted.live ?? deps.conversations.live(run.id) ?? null;
  if (live !== null) return { run, live, ending: null };
  return { run, live, ending: await storedEnding(deps, run) };
}

/** The ending of a run that is not in memory: a replayed one that has ended, or waits for a decision. */
async function storedEnding(deps: ChatDeps, run: Run): Promise<Ending> {
  if (isEnded(run.state)) return { kind: "ended", run };
  const approval = run.approvalId === null ? null : await deps.store.approvals.get(run.approvalId);
  if (approval !== null) return { kind: "waiting", run, approval };
  // Between two activations; a moment later it is live again.
  throw new BeamclawError("overloaded", "the run is being taken up again", { retryAfterSeconds: 1 });
}

function stream({ deps, following, mayDecide }: Answer, reply: FastifyReply, includeUsage: boolean): void {
  const answer = new ChatStream(reply, {
    ...following,
    includeUsage,
    mayDecide,
    clock: deps.clock,
    crowd: deps.crowd,
    headers: (outcome) => answerHeaders(following.run, outcome),
    onGone: () => abandon(deps, following.run),
  });
  answer.start();
}

/** The whole answer at once: the final one, whatever was said on the way to it. */
async function respond({ deps, following, mayDecide }: Answer, reply: FastifyReply): Promise<void> {
  const { run, live } = following;
  const ending = following.ending ?? (live === null ? null : await endingOf(live, reply.raw));
  if (ending === null) {
    abandon(deps, run);
    return;
  }
  const outcome = outcomeOf(ending, mayDecide);
  reply.headers(answerHeaders(run, outcome));
  if (outcome === null) {
    throw endFailure(ending);
  }
  await reply.type("application/json; charset=utf-8").send(completionOf(outcome));
}

/** Waits for the run; null when the client has gone away first. */
function endingOf(live: LiveRun, response: ServerResponse): Promise<Ending | null> {
  return new Promise((resolve) => {
    const settle = (): void => {
      if (live.ending === null && !response.destroyed) return;
      unfollow();
      response.off("close", settle);
      resolve(live.ending);
    };
    const unfollow = live.follow(settle);
    response.on("close", settle);
    settle();
  });
}

function answerHeaders(run: Run, outcome: Outcome | null): HeaderFields {
  return {
    "x-run-id": run.id,
    "x-session-id": run.sessionId,
    ...(outcome?.approval && { "x-approval-id": outcome.approval.id }),
  };
}

/** Nobody can ever read the outcome of a stateless run without a key; any other goes on. */
function abandon(deps: ChatDeps, run: Run): void {
  if (!run.ephemeral || run.keyed) return;
  deps.conversations.cancel(run.id, "disconnected").catch((error: unknown) => {
    deps.obs.defect(toError(error), run.id);
  });
}
