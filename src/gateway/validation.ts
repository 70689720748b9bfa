import type { z } from "zod";
import { BeamclawError } from "../domain/error-catalogue.ts";
import { invalid } from "./errors.ts";

/** Parses what a client sent. Throws `invalid_request` with the first wrong field's path and its trouble. */
export function parse<T extends z.ZodType>(schema: () => T, value: unknown): z.infer<T> {
  const parsed = schema().safeParse(value);
  if (parsed.success) return parsed.data;
  throw problemOf(parsed.error.issues[0], value);
}

/** As `parse`, for a JSON body; an absent body is an empty object. */
export function parseBody<T extends z.ZodType>(schema: () => T, body: unknown): z.infer<T> {
  const value = body ?? {};
  if (typeof value !== "object" || Array.isArray(value)) {
    throw new BeamclawError("invalid_json", "the body is not a JSON object");
  }
  return parse(schema, value);
}

/** What our schema library says before the part that helps a caller: `Too small: expected …`. */
const SCHEMA_JARGON =
  /^(?:Invalid discriminator value\. |Invalid (?:input|option|string): |Too (?:small|big): )/;

function problemOf(issue: z.core.$ZodIssue | undefined, value: unknown): BeamclawError {
  if (issue === undefined) return invalid("body", "is not valid");
  const { path, message } = deepest(issue);
  const missing = valueAt(value, path) === undefined;
  return invalid(pathText(path), missing ? "is missing" : message.replace(SCHEMA_JARGON, ""));
}

/** A union fails once per branch; the branch that got furthest is the one that the client meant. */
function deepest(issue: z.core.$ZodIssue): {
  readonly path: readonly PropertyKey[];
  readonly message: string;
} {
  if (issue.code !== "invalid_union") return issue;
  let found: { path: readonly PropertyKey[]; message: string } = issue;
  for (const branch of issue.errors) {
    const [first] = branch;
    if (first === undefined) continue;
    const inner = deepest(first);
    if (inner.path.length > found.path.length - issue.path.length) {
      found = { path: [...issue.path, ...inner.path], message: inner.message };
    }
  }
  return found;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const key of path) {
    if (typeof at !== "object" || at === null) return undefined;
    at = Reflect.get(at, key);
  }
  return at;
}

/** `messages[0].content`. */
function pathText(path: readonly PropertyKey[]): string {
  let text = "";
  for (const key of path) {
    if (typeof key === "number") text += `[${key}]`;
    else text += text === "" ? String(key) : `.${String(key)}`;
  }
  return text === "" ? "body" : text;
}
