import type { z } from "zod";
import { describeAllowed, keysAt } from "./config-allowed.ts";
import type { LineOf, Tree } from "./config-file.ts";
import { at } from "./config-paths.ts";
import { type ConfigProblem, dotted } from "./config-problem.ts";
import { type JsonSchema, configJsonSchema } from "./config-schema.ts";
import { nearestName } from "./nearest-name.ts";

/** What zod found, as unknown keys (which only warn) and wrong values (which do not pass). */
export function sortIssues(issues: readonly z.core.$ZodIssue[], tree: Tree, lineOf: LineOf): Issues {
  const schema = configJsonSchema();
  const unknown: Issue[] = [];
  const wrong: Issue[] = [];
  for (const issue of issues) {
    if (issue.code === "unrecognized_keys") {
      for (const key of issue.keys) unknown.push(unknownKey(schema, [...issue.path, key], lineOf));
    } else {
      wrong.push(wrongValue(issue, schema, tree, lineOf));
    }
  }
  return { unknown, wrong };
}

export interface Issues {
  readonly unknown: readonly Issue[];
  readonly wrong: readonly Issue[];
}

export interface Issue {
  readonly problem: ConfigProblem;
  /** What has to go from the file so that the rest can be looked at. */
  readonly path: readonly PropertyKey[];
}

function unknownKey(schema: JsonSchema, path: readonly PropertyKey[], lineOf: LineOf): Issue {
  const key = String(path.at(-1));
  const parent = path.slice(0, -1);
  const near = nearestName(key, keysAt(schema, parent));
  const cure =
    near === null
      ? `Remove it; \`beamclaw config show\` lists the keys.`
      : `Did you mean ${dotted([...parent, near])}?`;
  return { path, problem: { path: dotted(path), line: lineOf(path), message: "unknown key, ignored", cure } };
}

function wrongValue(issue: z.core.$ZodIssue, schema: JsonSchema, tree: Tree, lineOf: LineOf): Issue {
  const isMissing = at(tree, issue.path) === undefined;
  return {
    problem: problemOf(issue, schema, tree, lineOf),
    path: isMissing ? issue.path.slice(0, -1) : issue.path,
  };
}

function problemOf(issue: z.core.$ZodIssue, schema: JsonSchema, tree: Tree, lineOf: LineOf): ConfigProblem {
  const path = dotted(issue.path);
  if (issue.code === "invalid_key") {
    return {
      path,
      line: lineOf(issue.path),
      message: "this name is not allowed; names are made of a-z, 0-9, _ and -, at most 64",
      cure: "Rename it.",
    };
  }
  const found = at(tree, issue.path);
  const is = found === undefined ? "is missing" : `is ${show(found)}`;
  const rule = ruleOf(issue);
  return {
    path,
    line: lineOf(issue.path) ?? lineOf(issue.path.slice(0, -1)),
    message: rule === null ? `${is}, allowed is ${describeAllowed(schema, issue.path)}` : `${is}; ${rule}`,
    cure: found === undefined ? "Add the key." : "Correct the value, or remove the line to get the default.",
  };
}

/** What a slice says itself about a rule that the schema's shape cannot tell; zod's own texts all begin alike. */
const ruleOf = ({ message }: z.core.$ZodIssue): string | null =>
  /^(Invalid|Too|Unrecognized)\b/.test(message) ? null : message;

/** Numbers and switches are shown, texts are not: a secret may have ended up in the wrong place. */
function show(value: unknown): string {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (value === null) return "null";
  if (value === "") return "an empty text";
  if (Array.isArray(value)) return "a list";
  return typeof value === "string" ? "another text" : "a group of keys";
}
