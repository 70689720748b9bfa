import { type AgentDetails, type AgentRefusal, type AgentSummary, Workspaces } from "../agent/workspace.ts";
import { BeamclawError } from "../domain/error-catalogue.ts";
import { type AgentName, asId } from "../domain/ids.ts";
import { formatProblem } from "../app/config-problem.ts";
import { confirm } from "./confirm.ts";
import type { Invocation } from "./invocation.ts";
import { arrayOf, dataOf, objectOf, textOf } from "./json-fields.ts";

/**
 * Agents are folders, so these commands work without a daemon. Where one runs it is asked, because it may have
 * the agent in use.
 */
export async function create(invocation: Invocation): Promise<number> {
  const name = invocation.operand(0);
  const agent = await act(
    invocation,
    (client) => client.post("/admin/agents", { name }),
    (workspaces) => workspaces.create(name),
  );
  invocation.present(agent, () => {
    invocation.terminal.line(`created ${text(agent, "name")} in ${text(agent, "path")}`);
  });
  return 0;
}

export async function list(invocation: Invocation): Promise<number> {
  const { client } = invocation;
  const agents: readonly unknown[] = (await client.isRunning())
    ? dataOf(await client.get("/admin/agents"))
    : await offline(invocation).list();
  invocation.present(agents, () => {
    invocation.terminal.table(
      ["name", "calls itself", "folder"],
      agents.map((agent) => [text(agent, "name"), text(agent, "identityName") || "-", text(agent, "path")]),
    );
  });
  return 0;
}

export async function show(invocation: Invocation): Promise<number> {
  const name = invocation.operand(0);
  const details = await act(
    invocation,
    (client) => client.get(agentPath(name)),
    (workspaces) => workspaces.show(name),
  );
  const { files } = objectOf(details);
  invocation.present(details, () => {
    for (const file of arrayOf(files)) {
      const content = objectOf(file)["text"];
      invocation.terminal.line(`--- ${text(file, "name")} ---`);
      invocation.terminal.line(typeof content === "string" ? content.trimEnd() : "(not found)");
    }
  });
  return 0;
}

export async function remove(invocation: Invocation): Promise<number> {
  const name = invocation.operand(0);
  if (!(await confirm(invocation, `Delete the agent ${name} with all its files?`))) return 1;
  await act(
    invocation,
    (client) => client.delete(agentPath(name)),
    (workspaces) => workspaces.delete(name),
  );
  invocation.terminal.line(`deleted ${name}`);
  return 0;
}

export async function rehatch(invocation: Invocation): Promise<number> {
  const name = invocation.operand(0);
  if (!(await confirm(invocation, `Put the files of ${name} back to the templates and wipe its logs?`)))
    return 1;
  await act(
    invocation,
    (client) => client.post(`${agentPath(name)}/rehatch`, {}),
    (workspaces) => workspaces.rehatch(name),
  );
  invocation.terminal.line(`rehatched ${name}`);
  return 0;
}

const agentPath = (name: string): string => `/admin/agents/${encodeURIComponent(name)}`;

const text = (value: unknown, key: string): string => textOf(objectOf(value)[key]);

type Outcome = { readonly kind: "ok"; readonly agent: AgentSummary | AgentDetails } | AgentRefusal;

async function act(
  invocation: Invocation,
  online: (client: Invocation["client"]) => Promise<unknown>,
  local: (workspaces: Workspaces) => Promise<Outcome>,
): Promise<unknown> {
  const { client } = invocation;
  if (await client.isRunning()) return online(client);
  const outcome = await local(offline(invocation));
  if (outcome.kind === "ok") return outcome.agent;
  throw new BeamclawError(outcome.code, outcome.message);
}

/** The agents on disk. A configuration that is wrong does not hide them, but then nobody knows the default. */
function offline(invocation: Invocation): Workspaces {
  const { home } = invocation;
  const loaded = invocation.loadConfig();
  if (loaded.kind === "invalid") {
    for (const problem of loaded.problems) invocation.terminal.note(formatProblem(problem));
    throw new BeamclawError("configuration", "the configuration is wrong");
  }
  return new Workspaces({
    root: home.agents,
    templates: invocation.surroundings.installation.agentTemplates,
    defaultAgent: asId<AgentName>(loaded.config.agents.default),
  });
}
