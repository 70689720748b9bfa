/**
 * Builds a `Tool` from a schema and a few functions. Whatever a model writes as arguments ends as a valid
 * value or as one sentence that names the field and the cure; a tool body never sees unchecked input.
 */
import { z } from "zod";
import type { Autonomy, Effect } from "../domain/autonomy.ts";
import type { PreparedCall, Tool, ToolContext, ToolResult } from "./tool.ts";

type Shape = z.ZodObject;
type Invalid = { readonly kind: "invalid"; readonly message: string };

export interface ToolSpec<S extends Shape> {
  readonly name: string;
  /** For the model; short, it is part of every prompt. */
  readonly description: string;
  readonly input: S;
  /** JSON Schema shown to the model; derived from `input` unless given. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  /** Accepted other names of arguments, not shown to the model: `{ command: "script" }`. */
  readonly aliases?: Readonly<Record<string, string>>;
  readonly minAutonomy: Autonomy;
  readonly leastEffect: Effect;
  effect(args: z.output<S>): Effect;
  /** See `PreparedCall.pattern`. */
  pattern(args: z.output<S>): string | null;
  /** See `PreparedCall.summary`; the tool's name is put before it, line breaks and excess are removed. */
  summary(args: z.output<S>): string;
  run(args: z.output<S>, context: ToolContext): Promise<ToolResult>;
}

/** Characters of a question's one-line summary; the whole arguments are shown beside it. */
const MAX_SUMMARY = 300;

export function defineTool<S extends Shape>(spec: ToolSpec<S>): Tool {
  const parameters = spec.parameters ?? parametersOf(spec.input);
  return {
    definition: { name: spec.name, description: spec.description, parameters },
    minAutonomy: spec.minAutonomy,
    leastEffect: spec.leastEffect,
    prepare(json) {
      const parsed = parseArguments(spec, json);
      return parsed.kind === "invalid" ? parsed : prepared(spec, parsed.args);
    },
  };
}

export const succeeded = (text: string): ToolResult => ({ ok: true, text });
export const failed = (text: string): ToolResult => ({ ok: false, text });

function prepared<S extends Shape>(spec: ToolSpec<S>, args: z.output<S>): PreparedCall {
  return {
    kind: "prepared",
    effect: spec.effect(args),
    pattern: spec.pattern(args),
    summary: oneLine(`${spec.name} ${spec.summary(args)}`),
    run: (context) => spec.run(args, context),
  };
}

function parseArguments<S extends Shape>(
  spec: ToolSpec<S>,
  json: string,
): { readonly kind: "valid"; readonly args: z.output<S> } | Invalid {
  const received = parseObject(json);
  if (received === null) {
    return invalid(spec, `the arguments are not a JSON object; send one with ${expected(spec.input)}`);
  }
  const named = renameAliases(received, spec.aliases ?? {});
  const result = spec.input.safeParse(named);
  if (result.success) return { kind: "valid", args: result.data };
  const problems = result.error.issues.slice(0, 5).map((issue) => describeIssue(issue, named, spec.input));
  return invalid(spec, problems.join("; "));
}

/** Providers send an empty text for a call without arguments. */
function parseObject(json: string): Record<string, unknown> | null {
  try {
    const value: unknown = json.trim() === "" ? {} : JSON.parse(json);
    return isRecord(value) ? value : null;
  } catch {
    return null; // not JSON: the caller says so to the model
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function renameAliases(
  received: Record<string, unknown>,
  aliases: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const entries = Object.entries(received).map(([key, value]) => {
    const name = Object.hasOwn(aliases, key) ? aliases[key] : undefined;
    return [name !== undefined && !Object.hasOwn(received, name) ? name : key, value] as const;
  });
  return Object.fromEntries(entries);
}

function describeIssue(issue: z.core.$ZodIssue, received: Record<string, unknown>, input: Shape): string {
  if (issue.code === "unrecognized_keys") {
    return `${quoted(issue.keys)} is not an argument; the arguments are ${expected(input)}`;
  }
  const [field] = issue.path;
  if (issue.path.length === 1 && typeof field === "string" && !Object.hasOwn(received, field)) {
    const keys = Object.keys(received);
    return `\`${field}\` is missing (received: ${keys.length === 0 ? "nothing" : quoted(keys)})`;
  }
  return `\`${issue.path.join(".")}\`: ${issue.message}`;
}

const expected = (input: Shape): string => quoted(Object.keys(input.shape));

/** Names that a model made up may be long and many. */
const quoted = (names: readonly string[]): string =>
  names
    .slice(0, 10)
    .map((name) => `\`${name.slice(0, 40)}\``)
    .join(", ");

const invalid = (spec: { readonly name: string }, problem: string): Invalid => ({
  kind: "invalid",
  message: `${spec.name} was not run: ${problem}. Correct the arguments and call it again.`,
});

function parametersOf(input: Shape): Readonly<Record<string, unknown>> {
  const { $schema: _, ...schema } = z.toJSONSchema(input, { io: "input" });
  return schema;
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/gu, " ").trim().toWellFormed();
  return line.length <= MAX_SUMMARY ? line : `${line.slice(0, MAX_SUMMARY - 1).toWellFormed()}…`;
}
