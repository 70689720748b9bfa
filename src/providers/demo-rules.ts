import type { ModelRequest } from "../agent/provider.ts";
import { textOf, type ToolMessage, type WireMessage } from "../domain/message.ts";
import { toolRounds, type ToolRequest } from "./demo-requests.ts";

/** What the demo says and calls. */
export interface DemoReply {
  readonly text: string;
  readonly calls: readonly ToolRequest[];
}

const NOTICE =
  "(This is beamclaw's offline demo, a model of simple rules. For a real one set OPENROUTER_API_KEY, " +
  "OPENAI_API_KEY or ANTHROPIC_API_KEY and restart.)";

const HELP = [
  "I can show you everything but intelligence. Try:",
  "- my name is Ada … what is my name?",
  "- remember that the key is under the mat … what do you remember?",
  "- run `ls -l` · bash `for i in 1 2 3; do echo $i; done`",
  "- write hello to notes.txt, then read notes.txt · delete notes.txt",
  '- jq .a on {"a": 1} · search the web for erlang · fetch https://example.com',
  "- run `date` and read notes.txt (at once) · count to 100 (a longer answer)",
].join("\n");

const MAX_COUNT = 10_000;
/** How much of a tool's result is quoted, in characters. */
const MAX_QUOTE = 2_000;

/** The answer to a conversation: a pure function, so the same conversation always gets the same answer. */
export function demoReply(
  messages: readonly WireMessage[],
  request: Pick<ModelRequest, "tools" | "options">,
): DemoReply {
  const lastUser = messages.findLastIndex((message) => message.role === "user");
  const asked = lastUser < 0 ? "" : textOf(messages[lastUser]?.content ?? null).trim();
  const since = messages.slice(lastUser + 1);
  const done = since.filter(
    (message) => message.role === "assistant" && message.tool_calls !== undefined,
  ).length;
  const results = since.slice(since.findLastIndex((message) => message.role === "assistant") + 1);
  const summary = results.filter((message) => message.role === "tool").map((result) => sumUp(result, since));
  // After a denial the rest of the plan is off: the person said no.
  const denied = summary.some((line) => line.startsWith("You said no"));
  const round = denied ? undefined : nextRound(asked, done);
  if (round !== undefined) return callRound(round, request, summary);
  if (summary.length > 0) return say(summary.join("\n\n"));
  const first = messages.every((message) => message.role !== "assistant");
  const text = talk(asked, messages.slice(0, lastUser));
  return say(first && !text.includes(NOTICE) ? `${text}\n\n${NOTICE}` : text);
}

const say = (text: string): DemoReply => ({ text, calls: [] });

/** "again and again" asks for the same round for ever: what a loop needs to be stopped by its limits. */
function nextRound(asked: string, done: number): readonly ToolRequest[] | undefined {
  const endless = /\bagain and again\b/i.test(asked);
  const rounds = toolRounds(asked.replace(/[\s,]*\bagain and again\b/i, ""));
  return endless ? rounds[0] : rounds[done];
}

function callRound(
  round: readonly ToolRequest[],
  { tools, options }: Pick<ModelRequest, "tools" | "options">,
  summary: readonly string[],
): DemoReply {
  const offered = options.toolChoice === "none" ? [] : tools;
  const calls = round.filter((call) => offered.some((tool) => tool.name === call.tool));
  const missing = round.filter((call) => !calls.includes(call)).map((call) => `\`${call.tool}\``);
  const lines = [...summary];
  if (missing.length > 0) lines.push(`I cannot use ${missing.join(" and ")} here: it is not offered to me.`);
  if (calls.length > 0) lines.push(`I will use ${calls.map((call) => `\`${call.tool}\``).join(" and ")}.`);
  return { text: lines.join("\n\n"), calls };
}

function sumUp(result: WireMessage & ToolMessage, since: readonly WireMessage[]): string {
  const calls = since.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []));
  const name = calls.find((call) => call.id === result.tool_call_id)?.function.name ?? "the tool";
  if (result.content.startsWith("Denied:")) {
    return `You said no to \`${name}\`, so I left it. What shall I do instead?`;
  }
  const text = result.content.trim();
  if (text === "") return `\`${name}\` is done; it said nothing.`;
  const quoted = text.length > MAX_QUOTE ? `${text.slice(0, MAX_QUOTE)} …` : text;
  return quoted.includes("\n") ? `\`${name}\` says:\n${quoted}` : `\`${name}\` says: ${quoted}`;
}

/** Plain talk. `before`: the conversation so far. */
function talk(asked: string, before: readonly WireMessage[]): string {
  const said = before.filter((message) => message.role === "user").map((message) => textOf(message.content));
  const topic = /\bwhat(?:'s| is| was) my ([\p{L} ]{1,40}?)\s*\?*$/iu.exec(asked)?.[1]?.toLowerCase();
  if (topic !== undefined) {
    const fact = factsOf(said).get(topic);
    return fact === undefined ? `You have not told me your ${topic} yet.` : `Your ${topic} is ${fact}.`;
  }
  if (/\bwhat do you (?:remember|know about me)\b/i.test(asked)) return recollection(said);
  const told = [...factsOf([asked])];
  if (told.length > 0) return `Noted: ${told.map(([what, value]) => `your ${what} is ${value}`).join(", ")}.`;
  if (/^remember\b/i.test(asked)) return "I will remember that.";
  const count = /\bcount to (\d+)/i.exec(asked)?.[1];
  if (count !== undefined) return countTo(Math.min(MAX_COUNT, Number(count)));
  if (/\bwhat did i (?:say|write|ask)\b/i.test(asked)) {
    return said.length === 0
      ? "That was your first message."
      : `Before this you said: "${said.at(-1) ?? ""}"`;
  }
  if (/^(?:hi|hello|hey|hallo|good (?:morning|evening|day))\b/i.test(asked)) return greeting(said);
  if (asked === "" || /\b(?:help|who are you|what can you do)\b/i.test(asked)) return `${HELP}\n\n${NOTICE}`;
  return `You said: "${asked}". I am only a demo and know no more about it; say "help" to see what I can do.`;
}

function greeting(said: readonly string[]): string {
  const name = factsOf(said).get("name");
  return `Hello${name === undefined ? "" : `, ${name}`}! Say "help" to see what I can do.`;
}

function recollection(said: readonly string[]): string {
  const facts = [...factsOf(said)].map(([what, value]) => `- your ${what} is ${value}`);
  const notes = said
    .map((text) => /^\s*(?:please )?remember (?:that )?([\s\S]+)$/i.exec(text)?.[1])
    .filter((note) => note !== undefined)
    .map((note) => `- ${note.trim()}`);
  const all = [...new Set([...facts, ...notes])];
  return all.length === 0 ? "You have told me nothing to remember yet." : `I remember:\n${all.join("\n")}`;
}

const FACT = /\bmy ([\p{L} ]{1,40}?) is ([^.,!?\n]{1,200}?)(?=\s+and my\b|[.,!?\n]|$)/giu;

/** What the person has said about themselves; the latest word counts. */
function factsOf(said: readonly string[]): ReadonlyMap<string, string> {
  const facts = new Map<string, string>();
  for (const text of said) {
    for (const [, what = "", value = ""] of text.matchAll(FACT)) {
      facts.set(what.toLowerCase(), value.trim());
    }
  }
  return facts;
}

function countTo(limit: number): string {
  return Array.from({ length: limit }, (_, index) => String(index + 1)).join(" ");
}
