import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { lazily } from "../kernel/lazily.ts";
import { BeamclawError } from "../domain/error-catalogue.ts";
import { asId, type RunId, type SessionId } from "../domain/ids.ts";
import type { Run, RunState } from "../domain/run.ts";
import { mayUse, reaches } from "./caller.ts";
import { invalid, notFound } from "./errors.ts";
import { RunEventStream } from "./run-event-stream.ts";
import { pageOf, pageQuery, statesOf } from "./query.ts";
import { callerOf, headerText, idOf, principalFilter, selfOf } from "./request.ts";
import type { Route, RouteDeps } from "./route.ts";
import { parse } from "./validation.ts";
import { pageView, runView } from "./views.ts";

const runStates = [
  "queued",
  "running",
  "waiting",
  "retrying",
  "completed",
  "failed",
  "cancelled",
  "expired",
] as const satisfies readonly RunState[];

const listQuery = lazily(() =>
  z.object({
    ...pageQuery(),
    session_id: z.string().max(128).optional(),
    state: statesOf(runStates),
  }),
);
const afterQuery = lazily(() => z.object({ after: z.coerce.number().int().min(-1).default(-1) }));

export function runRoutes(deps: RouteDeps): readonly Route[] {
  const { store, conversations, rules } = deps;
  return [
    {
      method: "GET",
      url: "/v1/runs",
      scopes: ["chat"],
      handle: async (request) => {
        const query = parse(listQuery, request.query);
        const found = await store.runs.list({
          ...principalFilter(rules, request),
          ...(query.session_id && { sessionId: asId<SessionId>(query.session_id) }),
          ...(query.state && { states: query.state }),
          page: pageOf(query),
        });
        const data = found.data.filter((run) => mayUse(callerOf(request), run.agent));
        return pageView({ ...found, data }, runView);
      },
    },
    {
      method: "GET",
      url: "/v1/runs/:id",
      scopes: ["chat"],
      handle: async (request) => runView(await findRun(deps, request)),
    },
    {
      method: "POST",
      url: "/v1/runs/:id/cancel",
      scopes: ["chat"],
      handle: async (request) => {
        const { id } = await findRun(deps, request);
        const outcome = await conversations.cancel(id, "user");
        if (outcome === "run_ended") throw new BeamclawError("run_ended", "the run has ended");
        const run = outcome === "not_found" ? null : await store.runs.get(id);
        if (run === null) throw notFound("run");
        return runView(run);
      },
    },
    {
      method: "GET",
      url: "/v1/runs/:id/events",
      scopes: ["chat"],
      refusedWhileDraining: true,
      handle: async (request, reply) => {
        const after = positionOf(request);
        const run = await findRun(deps, request);
        new RunEventStream(reply, deps, run, after).start();
        return reply;
      },
    },
  ];
}

async function findRun({ store, rules }: RouteDeps, request: FastifyRequest): Promise<Run> {
  const self = selfOf(rules, request);
  const run = await store.runs.get(asId<RunId>(idOf(request)));
  if (run === null || !reaches(callerOf(request), self, run)) throw notFound("run");
  return run;
}

/** Where a reader left off: browsers and SSE clients send `Last-Event-ID` by themselves. */
function positionOf(request: FastifyRequest): number {
  const last = headerText(request, "last-event-id");
  if (last === null) return parse(afterQuery, request.query).after;
  const seq = Number(last);
  if (!Number.isSafeInteger(seq) || seq < -1) throw invalid("last-event-id", "is not the id of an event");
  return seq;
}
