import { z } from "zod";
import { lazily } from "../kernel/lazily.ts";
import { BeamclawError } from "../domain/error-catalogue.ts";
import type { AgentName } from "../domain/ids.ts";
import { type Caller, mayUse } from "./caller.ts";
import { modelOf } from "./chat-request.ts";
import { openApiDocument } from "./openapi.ts";
import { callerOf } from "./request.ts";
import type { Route, RouteDeps } from "./route.ts";
import { parse } from "./validation.ts";

/** The model that means the default agent. */
const DEFAULT_MODEL = "beamclaw";

const modelParams = lazily(() => z.object({ "*": z.string() }));

/** Health, metrics, the API's description, and the agents as OpenAI's models. */
export function systemRoutes(deps: RouteDeps): readonly Route[] {
  let document: string | null = null; // built once, when somebody asks
  return [
    {
      method: "GET",
      url: "/health",
      scopes: null,
      handle: async () => ({ status: "ok", ts: Math.floor(deps.clock.now() / 1000) }),
    },
    {
      method: "GET",
      url: "/ready",
      scopes: null,
      handle: async (_request, reply) => {
        const { ready, checks } = await deps.readiness();
        const draining = deps.draining.aborted;
        const status = draining ? "draining" : ready ? "ready" : "not_ready";
        return reply.code(status === "ready" ? 200 : 503).send({ status, checks });
      },
    },
    {
      method: "GET",
      url: "/metrics",
      scopes: ["metrics"],
      handle: async (_request, reply) =>
        reply.type("text/plain; version=0.0.4; charset=utf-8").send(await deps.metrics.render()),
    },
    {
      method: "GET",
      url: "/openapi.json",
      scopes: null,
      handle: async (_request, reply) => {
        document ??= JSON.stringify(openApiDocument(deps.version));
        return reply.type("application/json; charset=utf-8").send(document);
      },
    },
    {
      method: "GET",
      url: "/v1/models",
      scopes: ["chat"],
      handle: async (request) => {
        const names = await agentsOf(deps, callerOf(request));
        return { object: "list", data: [DEFAULT_MODEL, ...names.map(modelOf)].map(modelView) };
      },
    },
    {
      // A wildcard, because model names hold a slash.
      method: "GET",
      url: "/v1/models/*",
      scopes: ["chat"],
      handle: async (request) => {
        const model = parse(modelParams, request.params)["*"];
        const names = await agentsOf(deps, callerOf(request));
        if (model !== DEFAULT_MODEL && !names.some((name) => modelOf(name) === model)) {
          throw new BeamclawError("agent_not_found", "no such model", { param: "model" });
        }
        return modelView(model);
      },
    },
  ];
}

const agentsOf = async (deps: RouteDeps, caller: Caller): Promise<readonly AgentName[]> =>
  (await deps.agents.list()).map(({ name }) => name).filter((name) => mayUse(caller, name));

/** OpenAI's `Model`. Agents have no date of birth that a client could use. */
const modelView = (id: string) => ({ id, object: "model", created: 0, owned_by: "beamclaw" });
