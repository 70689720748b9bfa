import type { Invocation } from "./invocation.ts";

/** Asks a person before something that cannot be undone; scripts and `--yes` have decided already. */
export async function confirm(invocation: Invocation, question: string): Promise<boolean> {
  const { terminal } = invocation;
  if (invocation.flag("yes") || !terminal.canAsk) return true;
  const answer = await terminal.ask(`${question} [y/N] `);
  if (answer !== null && /^y(es)?$/i.test(answer)) return true;
  terminal.note("Nothing was changed.");
  return false;
}
