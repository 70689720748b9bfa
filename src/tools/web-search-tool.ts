import { z } from "zod";
import { lazily } from "../kernel/lazily.ts";
import { defineTool, failed, succeeded } from "./define-tool.ts";
import type { Egress } from "./egress.ts";
import { fromOutside } from "./model-text.ts";
import type { Tool, ToolResult } from "./tool.ts";

export interface WebSearchOptions {
  /** Reaches the search service and nothing else. */
  readonly egress: Egress;
  /** Of the Brave Search API, without the path: `https://api.search.brave.com`. */
  readonly baseUrl: string;
  /** Null where none is configured: every call then says how to get one. */
  readonly apiKey: string | null;
  /** Results of one call at most, 1–20. */
  readonly maxResults: number;
}

const DEFAULT_COUNT = 5;
const MAX_ERROR_CHARS = 500;

const input = lazily(() =>
  z.strictObject({
    query: z.string().min(1).max(400).describe("What to search for"),
    // Models send numbers as text and numbers out of range; none of that is worth an error.
    count: z.unknown().optional(),
    freshness: z
      .string()
      .regex(
        /^(p[dwmy]|\d{4}-\d{2}-\d{2}to\d{4}-\d{2}-\d{2})$/,
        "use pd, pw, pm, py or 2026-01-31to2026-02-28",
      )
      .optional(),
    country: z
      .string()
      .regex(/^[A-Za-z]{2}$/, "use two letters, such as US")
      .optional(),
  }),
);

const parameters = {
  type: "object",
  properties: {
    query: { type: "string", description: "What to search for" },
    count: { type: "integer", description: `Number of results, ${DEFAULT_COUNT} unless given` },
    freshness: { type: "string", description: "pd, pw, pm, py, or a range like 2026-01-31to2026-02-28" },
    country: { type: "string", description: "Two letters" },
  },
  required: ["query"],
  additionalProperties: false,
};

/** The part of the answer that is used: Brave Search API, Web search, `web.results`. */
const answer = lazily(() =>
  z.object({
    web: z
      .object({
        results: z.array(
          z.object({ title: z.string(), url: z.string(), description: z.string().default("") }),
        ),
      })
      .optional(),
  }),
);

export function webSearchTool(options: WebSearchOptions): Tool {
  return defineTool({
    name: "web_search",
    description: "Search the web. Returns titles, addresses and descriptions.",
    input: input(),
    parameters,
    minAutonomy: "read_only",
    leastEffect: "none",
    effect: () => "none",
    pattern: () => null,
    summary: ({ query }) => query,
    run: (args, { signal }) => search(args, options, signal),
  });
}

async function search(
  args: z.output<ReturnType<typeof input>>,
  options: WebSearchOptions,
  signal: AbortSignal,
): Promise<ToolResult> {
  if (options.apiKey === null) {
    return failed(
      "Web search is not set up: get a key at https://brave.com/search/api/ and set BRAVE_API_KEY.",
    );
  }
  const outcome = await options.egress.request({
    url: searchUrl(args, options),
    method: "GET",
    headers: { accept: "application/json", "x-subscription-token": options.apiKey },
    signal,
  });
  if (outcome.kind === "cancelled") return failed("Cancelled.");
  if (outcome.kind !== "answered") return failed(`Web search failed: ${outcome.message}.`);
  const text = outcome.body.kind === "text" ? outcome.body.text : "";
  if (outcome.status === 200) return describeResults(args.query, text);
  const reason = fromOutside("web_search", text.slice(0, MAX_ERROR_CHARS));
  return failed(`Web search failed with status ${outcome.status}.\n${reason}`);
}

function searchUrl(
  args: z.output<ReturnType<typeof input>>,
  { baseUrl, maxResults }: WebSearchOptions,
): string {
  const url = new URL("/res/v1/web/search", baseUrl);
  url.searchParams.set("q", args.query);
  url.searchParams.set("count", String(clampCount(args.count, maxResults)));
  if (args.freshness !== undefined) url.searchParams.set("freshness", args.freshness);
  if (args.country !== undefined) url.searchParams.set("country", args.country.toUpperCase());
  return url.href;
}

function clampCount(count: unknown, maxResults: number): number {
  const wanted = Number.isInteger(count) ? Number(count) : DEFAULT_COUNT;
  return Math.min(Math.max(wanted, 1), maxResults);
}

function describeResults(query: string, text: string): ToolResult {
  const results = parseResults(text);
  if (results === null) return failed("Web search answered something unreadable; try again later.");
  if (results.length === 0) return succeeded(`No results for: ${query}`);
  const entries = results.map((result, index) => {
    return `${index + 1}. ${result.title}\n   ${result.url}\n   ${result.description}`;
  });
  const body = fromOutside("web_search", entries.join("\n\n"));
  return succeeded(`Results for: ${query}\n${body}\n${results.length} results`);
}

function parseResults(text: string) {
  try {
    return answer().parse(JSON.parse(text)).web?.results ?? [];
  } catch {
    return null; // not JSON, or JSON of another shape
  }
}
