import { stringify } from "yaml";
import { formatProblem } from "../app/config-problem.ts";
import { configJsonSchema } from "../app/config-schema.ts";
import type { LoadedConfig } from "../app/config.ts";
import { errorCatalogue } from "../domain/error-catalogue.ts";
import type { Invocation } from "./invocation.ts";

/** `config check`: everything that is wrong, at once. */
export async function check(invocation: Invocation): Promise<number> {
  const loaded = invocation.loadConfig();
  const problems = loaded.kind === "invalid" ? loaded.problems : [];
  if (invocation.flag("json")) {
    invocation.terminal.json({ valid: loaded.kind === "ok", problems, warnings: loaded.warnings });
  } else if (loadedOrTold(invocation) !== null) {
    invocation.terminal.line(`${invocation.configSource().file}: the configuration is valid`);
  }
  return loaded.kind === "ok" ? 0 : errorCatalogue.configuration.exit;
}

/** `config show`: the running daemon's configuration, or the one that a start would use. */
export async function show(invocation: Invocation): Promise<number> {
  const { client } = invocation;
  const running = invocation.text("config") === null && (await client.isRunning());
  const answer = running ? await client.get("/admin/config") : loadedOrTold(invocation);
  if (answer === null) return errorCatalogue.configuration.exit;
  const config = typeof answer === "object" && "config" in answer ? answer.config : answer;
  invocation.present(config, () => {
    invocation.terminal.write(stringify(config));
  });
  return 0;
}

export async function schema(invocation: Invocation): Promise<number> {
  invocation.terminal.json(configJsonSchema());
  return 0;
}

/** The configuration that a start would use, with its warnings told; null where it is wrong, which is told too. */
export function loadedOrTold(invocation: Invocation): LoadedConfig | null {
  const loaded = invocation.loadConfig();
  const { terminal } = invocation;
  for (const warning of loaded.warnings) terminal.note(`warning: ${formatProblem(warning)}`);
  if (loaded.kind === "ok") return loaded;
  terminal.note(`beamclaw: the configuration has ${loaded.problems.length} problem(s):`);
  for (const problem of loaded.problems) terminal.note(`  ${formatProblem(problem)}`);
  return null;
}
