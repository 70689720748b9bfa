import { z } from "zod";
import { lazily } from "../kernel/lazily.ts";
import { Unreachable } from "../kernel/errors.ts";
import { defineTool, failed, succeeded } from "./define-tool.ts";
import type { Egress, EgressOutcome } from "./egress.ts";
import { expandVariables, hideVariables } from "./expand-variables.ts";
import { fromOutside } from "./model-text.ts";
import type { Tool, ToolResult } from "./tool.ts";

const MAX_BODY_CHARS = 1_048_576;

const input = lazily(() =>
  z.strictObject({
    url: z.string().min(1).max(8_192),
    method: z.enum(["GET", "POST", "PUT", "DELETE", "PATCH"]).default("GET"),
    headers: z.record(z.string().max(256), z.string().max(8_192)).default({}),
    body: z.string().max(MAX_BODY_CHARS).optional(),
  }),
);

type CurlArguments = z.output<ReturnType<typeof input>>;

/** Written out, because not every provider accepts what the schema of a free-form object turns into. */
const parameters = {
  type: "object",
  properties: {
    url: { type: "string" },
    method: { type: "string", enum: ["GET", "POST", "PUT", "DELETE", "PATCH"] },
    headers: { type: "object" },
    body: { type: "string" },
  },
  required: ["url"],
  additionalProperties: false,
};

/** `variables` are the only ones that `$NAME` and `${NAME}` stand for in the URL and in header values. */
export function curlTool(egress: Egress, variables: ReadonlyMap<string, string>): Tool {
  return defineTool({
    name: "curl",
    description: "Send one HTTP request. Returns the status, a line end and the body as text.",
    input: input(),
    parameters,
    minAutonomy: "supervised",
    leastEffect: "external",
    effect: () => "external",
    pattern: (args) => patternOf(args, variables),
    summary: ({ method, url, body }) =>
      `${method} ${url}${body === undefined ? "" : ` (body of ${body.length} characters)`}`,
    async run({ url, method, headers, body }, { signal }) {
      const outcome = await egress.request({
        url: expandVariables(url, variables),
        method,
        headers: mapValues(headers, (value) => expandVariables(value, variables)),
        ...(body !== undefined && { body }),
        signal,
      });
      const { ok, text } = describeOutcome(outcome, url);
      return { ok, text: hideVariables(text, variables) };
    },
  });
}

/**
 * `METHOD origin`. Null where a variable decides the host: the person would not see what is allowed.
 */
function patternOf({ method, url }: CurlArguments, variables: ReadonlyMap<string, string>): string | null {
  const written = URL.parse(url)?.origin;
  const meant = URL.parse(expandVariables(url, variables))?.origin;
  return written === undefined || written !== meant ? null : `${method} ${written}`;
}

function describeOutcome(outcome: EgressOutcome, url: string): ToolResult {
  switch (outcome.kind) {
    case "answered":
      return succeeded(`${outcome.status}\n${describeBody(outcome, url)}`);
    case "refused":
      return failed(`Refused: ${outcome.message}.`);
    case "failed":
      return failed(`Failed: ${outcome.message}. A request with an effect may have arrived all the same.`);
    case "cancelled":
      return failed("Cancelled; the request may have arrived.");
    default:
      throw new Unreachable(outcome);
  }
}

function describeBody({ body }: Extract<EgressOutcome, { kind: "answered" }>, url: string): string {
  if (body.kind === "binary") return `[binary content, ${body.contentType || "unknown type"}, not shown]`;
  const note = body.truncated ? "\n[the body goes on; ask the server for less]" : "";
  return fromOutside(url, body.text) + note;
}

const mapValues = (
  record: Readonly<Record<string, string>>,
  change: (value: string) => string,
): Record<string, string> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
