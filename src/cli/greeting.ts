import { readFileSync } from "node:fs";
import type { DaemonReady } from "../app/daemon-module.ts";
import type { Home } from "../app/home.ts";
import type { Terminal } from "./terminal.ts";

/**
 * What a person needs after a start. The token is shown to a terminal only: whatever else the output goes to
 * (a log, a pipe, a container's collector) is read by others, so there it is the file's path.
 */
export function greet(terminal: Terminal, home: Home, ready: DaemonReady): void {
  const say = terminal.isShown
    ? (text: string) => terminal.line(text)
    : (text: string) => terminal.note(text);
  const { name, reason, isDemo } = ready.provider;
  say(`beamclaw answers at ${ready.url}`);
  say(`  model    ${name} (${reason})`);
  if (isDemo) {
    say("           Set OPENROUTER_API_KEY, OPENAI_API_KEY or ANTHROPIC_API_KEY and restart for a real one.");
  }
  say(`  token    ${terminal.isShown ? readToken(home) : `in ${home.tokenFile}`}`);
  say('  chat     beamclaw send "Hello!"        (in a checkout: bin/beamclaw send …)');
  say(`  or       curl -N ${ready.url}/v1/chat/completions \\`);
  say(
    `             -H "Authorization: Bearer $(cat ${home.tokenFile})" -H "Content-Type: application/json" \\`,
  );
  say(
    `             -d '{"model":"beamclaw","stream":true,"user_id":"me","messages":[{"role":"user","content":"Hello!"}]}'`,
  );
}

function readToken(home: Home): string {
  try {
    return readFileSync(home.tokenFile, "utf8").trim();
  } catch {
    return `in ${home.tokenFile}`; // somebody keeps it elsewhere
  }
}
