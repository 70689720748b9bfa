/** A tool call that somebody asked for in plain words. */
export interface ToolRequest {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** Words that begin a request for a tool; a sentence is split before them. */
const VERBS = "run|execute|bash|read|show|write|delete|remove|search|look up|jq|fetch|curl|get|call|use";
const POLITE = /^(?:please|now|first|finally|next|also|can you|could you|would you|just|and|,|\s)+/i;

/**
 * The requests of a message as rounds: what is joined by "and", a comma or a line break is asked for at once,
 * what follows "then" afterwards. Quoted and back-quoted text is never split. No rounds: plain talk.
 */
export function toolRounds(message: string): readonly (readonly ToolRequest[])[] {
  const quotes: string[] = [];
  const masked = message.replaceAll(
    /`[^`]*`|"[^"]*"/g,
    (quote) => `\u{e000}${quotes.push(quote) - 1}\u{e001}`,
  );
  const unmask = (text: string): string =>
    text.replaceAll(/\u{e000}(\d+)\u{e001}/gu, (_, index: string) => quotes[Number(index)] ?? "");
  return masked
    .split(/[\s,;.]*\bthen\b[\s,]*/i)
    .map((round) =>
      round
        .split(new RegExp(`(?:\\s*[,;\\n]\\s*(?:and\\s+)?|\\s+and\\s+)(?=(?:also\\s+)?(?:${VERBS})\\b)`, "i"))
        .map((clause) => toolRequest(unmask(clause.replace(POLITE, "")).trim()))
        .filter((request) => request !== null),
    )
    .filter((round) => round.length > 0);
}

type Reader = (match: RegExpExecArray) => ToolRequest | null;

const RULES: readonly (readonly [RegExp, Reader])[] = [
  [/^(?:call|use) (\S+) with (\{[\s\S]*\})/i, ([, tool = "", json = ""]) => generic(tool, json)],
  [
    /^(?:write|save) ([\s\S]+) (?:to|into|in) (?:the )?(?:file )?(\S+)$/i,
    ([, text = "", path = ""]) => ({
      tool: "write_file",
      arguments: { path: bare(path), content: unquote(text) },
    }),
  ],
  [/^jq ([\s\S]+?) on ([\s\S]+)$/i, ([, filter = "", input = ""]) => jq(filter, input)],
  [
    /^(?:fetch|curl|get) [`"]?(https?:\/\/[^\s`"]+)/i,
    ([, url = ""]) => ({ tool: "curl", arguments: { url: bare(url) } }),
  ],
  [
    /^(?:search (?:the web )?for|look up|search) ([\s\S]+)$/i,
    ([, query = ""]) => ({ tool: "web_search", arguments: { query: bare(query) } }),
  ],
  [
    /^(?:delete|remove) (?:the )?(?:file )?(\S+)/i,
    ([, path = ""]) => ({ tool: "delete_file", arguments: { path: bare(path) } }),
  ],
  [
    /^(?:read|show me|show) (?:the )?(?:file )?(\S*[./]\S*|[`"]\S+[`"])/i,
    ([, path = ""]) => ({ tool: "read_file", arguments: { path: bare(path) } }),
  ],
  [/^bash ([\s\S]+)$/i, ([, script = ""]) => ({ tool: "bash", arguments: { script: unquote(script) } })],
  [
    /^(?:run|execute) (?:the )?(?:command )?(?:(`[^`]+`|"[^"]+")|([\s\S]+))/i,
    ([, quoted, plain = ""]) => ({ tool: "terminal", arguments: { command: unquote(quoted ?? plain) } }),
  ],
];

function toolRequest(clause: string): ToolRequest | null {
  for (const [pattern, read] of RULES) {
    const match = pattern.exec(clause);
    if (match !== null) return read(match);
  }
  return null;
}

function jq(filter: string, input: string): ToolRequest {
  return { tool: "jq", arguments: { filter: unquote(filter), input: unquote(input) } };
}

function generic(tool: string, json: string): ToolRequest | null {
  try {
    return { tool: unquote(tool), arguments: JSON.parse(json) };
  } catch {
    return null;
  }
}

/** Without its quotes, or else without the sentence's full stop. */
const unquote = (text: string): string => {
  const trimmed = text.trim();
  return /^(`[\s\S]*`|"[\s\S]*"|'[\s\S]*')$/.test(trimmed) ? trimmed.slice(1, -1) : trimmed;
};

const bare = (text: string): string => unquote(text.trim().replace(/[.?!,]+$/, ""));
