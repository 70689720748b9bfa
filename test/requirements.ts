/**
 * What the product promises, as data: faults of the system that was ported, each answered by at least one test
 * that cites it with `verifies`. `test/requirements.test.ts` fails if an id of a finished issue is uncited, or
 * a citation names an unknown id.
 */
export interface Requirement {
  readonly behaviour: string;
  readonly issue: number;
}

export const requirements = {
  W1: { issue: 2, behaviour: "an unset optional secret switches off its feature and nothing else" },
  W2: { issue: 2, behaviour: "a tool with effects runs only after a person's decision; no answer means no" },
  W3: { issue: 2, behaviour: "autonomy limits both what is offered and what is run" },
  W4: { issue: 2, behaviour: "a turn ends at its final answer, not at the first assistant message" },
  W5: { issue: 2, behaviour: "answers stream as produced, can be cancelled, and have one deadline" },
  W7: { issue: 2, behaviour: "assistant tool calls and tool call ids go back to the model, paired" },
  W8: { issue: 2, behaviour: "at the iteration limit the user still gets an answer" },
  W9: { issue: 2, behaviour: "the configured provider is the one that sessions use" },
  W13: { issue: 2, behaviour: "two first messages of one session share one lane" },
  W18: { issue: 2, behaviour: "history is appended in transactions, never rewritten; attachments are files" },
  W19: { issue: 2, behaviour: "text of tools is never read as a path of a file to send" },
  W20: { issue: 2, behaviour: "secrets are redacted in every shape at every boundary, ordinary text is not" },
  W23: { issue: 2, behaviour: "every route but health needs a token, and a token reaches only its own" },
  W25: { issue: 2, behaviour: "tool arguments never become shell text that we build" },
  W26: { issue: 2, behaviour: "outgoing requests of tools leak no environment and reach no private address" },
  W27: {
    issue: 2,
    behaviour: "processes of tools are bounded in time, output and environment, and die whole",
  },
  W28: { issue: 2, behaviour: "file tools stay inside their roots, with size limits and text only" },
  W58: { issue: 2, behaviour: "rate limits are per client, configurable and cannot be confused by proxies" },
  W60: { issue: 2, behaviour: "logs hold no message text and are private to their owner" },
  W62: { issue: 2, behaviour: "the control plane is a private socket; paths do not depend on the cwd" },
  W63: { issue: 2, behaviour: "provider faults are retried, classified and accounted" },
  W65: {
    issue: 2,
    behaviour: "events carry the documented fields; faults are counted; runs have a trace id",
  },
  W66: { issue: 2, behaviour: "a crash of a part keeps every tool registered" },
  W67: { issue: 2, behaviour: "commands say what is missing and exit non-zero when they fail" },
  W69: { issue: 2, behaviour: "tool calls in text are off by default and never found inside code" },
  W70: { issue: 2, behaviour: "identities cannot be confused by joining, nor merged by an empty setting" },
} as const satisfies Record<string, Requirement>;

export type RequirementId = keyof typeof requirements;
