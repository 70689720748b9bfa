import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { lazily } from "../kernel/lazily.ts";
import type { Approval, ApprovalState } from "../domain/approval.ts";
import { BeamclawError } from "../domain/error-catalogue.ts";
import { type ApprovalId, asId, type SessionId } from "../domain/ids.ts";
import { may, mayUse, reaches } from "./caller.ts";
import { invalid, notFound } from "./errors.ts";
import { pageOf, pageQuery, statesOf } from "./query.ts";
import { callerOf, idOf, principalFilter, selfOf } from "./request.ts";
import type { Route, RouteDeps } from "./route.ts";
import { parse, parseBody } from "./validation.ts";
import { approvalView, pageView } from "./views.ts";

const approvalStates = [
  "pending",
  "approved",
  "denied",
  "expired",
  "withdrawn",
] as const satisfies readonly ApprovalState[];

const listQuery = lazily(() =>
  z.object({
    ...pageQuery(),
    session_id: z.string().max(128).optional(),
    state: statesOf(approvalStates),
  }),
);
const decisionBody = lazily(() => z.object({ decision: z.enum(["approve", "deny", "always"]) }));

/** Everybody sees the questions of their own runs; a token with `approvals` sees and answers all. */
export function approvalRoutes(deps: RouteDeps): readonly Route[] {
  const { store, conversations, rules } = deps;
  return [
    {
      method: "GET",
      url: "/v1/approvals",
      scopes: ["chat", "approvals"],
      handle: async (request) => {
        const query = parse(listQuery, request.query);
        const found = await store.approvals.list({
          ...principalFilter(rules, request, may(callerOf(request), "approvals")),
          ...(query.session_id && { sessionId: asId<SessionId>(query.session_id) }),
          ...(query.state && { states: query.state }),
          page: pageOf(query),
        });
        return pageView({ ...found, data: await ofOwnAgent(deps, request, found.data) }, approvalView);
      },
    },
    {
      method: "GET",
      url: "/v1/approvals/:id",
      scopes: ["chat", "approvals"],
      handle: async (request) => approvalView(await findApproval(deps, request)),
    },
    {
      method: "POST",
      url: "/v1/approvals/:id",
      scopes: ["approvals"],
      handle: async (request) => {
        const { decision } = parseBody(decisionBody, request.body);
        const { id, pattern } = await findApproval(deps, request);
        if (decision === "always" && pattern === null) {
          throw invalid("decision", "this tool cannot be allowed for good; approve or deny");
        }
        const by = selfOf(rules, request).principal;
        const decided = await conversations.decide(id, decision, by);
        if (decided.kind === "decided") return approvalView(decided.approval);
        if (decided.code === "not_found") throw notFound("approval");
        throw new BeamclawError(decided.code, "the question has been answered");
      },
    },
  ];
}

async function findApproval(deps: RouteDeps, request: FastifyRequest): Promise<Approval> {
  const caller = callerOf(request);
  const approval = await deps.store.approvals.get(asId<ApprovalId>(idOf(request)));
  const run = approval === null ? null : await deps.store.runs.get(approval.runId);
  if (approval === null || run === null) throw notFound("approval");
  const reached = may(caller, "approvals")
    ? mayUse(caller, run.agent)
    : reaches(caller, selfOf(deps.rules, request), run);
  if (!reached) throw notFound("approval");
  return approval;
}

/** A token that is restricted to an agent sees no other agent's questions; only such a token pays for the look. */
async function ofOwnAgent(
  { store }: RouteDeps,
  request: FastifyRequest,
  approvals: readonly Approval[],
): Promise<readonly Approval[]> {
  const caller = callerOf(request);
  if (caller.agent === null) return approvals;
  const own: Approval[] = [];
  for (const approval of approvals) {
    const run = await store.runs.get(approval.runId);
    if (run !== null && mayUse(caller, run.agent)) own.push(approval);
  }
  return own;
}
