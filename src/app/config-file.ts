import { LineCounter, parseDocument } from "yaml";
import type { ConfigProblem } from "./config-problem.ts";
import { isSecretRef } from "./secrets.ts";

/** Plain data as YAML gives it, before anything is known about its shape. */
export interface Tree {
  readonly [key: string]: unknown;
}

/** One-based line of a path in the file; null where the path is not in it. */
export type LineOf = (path: readonly PropertyKey[]) => number | null;

export type ParsedFile =
  | { readonly kind: "parsed"; readonly tree: Tree; readonly lineOf: LineOf }
  | { readonly kind: "malformed"; readonly problems: readonly ConfigProblem[] };

export const isTree = (value: unknown): value is Tree =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Deeper than any real configuration; keeps hostile nesting away from everything that recurses. */
const MAX_DEPTH = 16;

/** Reads YAML text (an empty one is an empty configuration). Never throws. */
export function parseConfigFile(text: string): ParsedFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  if (document.errors.length > 0) {
    return malformed(document.errors.map((error) => [error.message, lines.linePos(error.pos[0]).line]));
  }
  const content = toPlain(() => document.toJS({ maxAliasCount: 50 }));
  if (content instanceof Error) return malformed([[content.message, null]]);
  if (content !== null && !isTree(content)) {
    return malformed([["the file must hold keys and values, such as `autonomy: supervised`", 1]]);
  }
  if (!within(content, MAX_DEPTH)) return malformed([[`nested more than ${MAX_DEPTH} levels deep`, null]]);
  return {
    kind: "parsed",
    tree: content ?? {},
    lineOf: (path) => lineOfNode(document.getIn(path, true), lines),
  };
}

function malformed(found: readonly (readonly [message: string, line: number | null])[]): ParsedFile {
  return {
    kind: "malformed",
    problems: found.map(([message, line]) => ({
      path: "",
      line,
      message: `not valid YAML: ${message}`,
      cure: "Correct the line; `key: value` pairs, indented by spaces.",
    })),
  };
}

/** Unresolved and exploding aliases are thrown by the parser. */
function toPlain(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function within(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((child) => within(child, depth - 1));
}

function lineOfNode(node: unknown, lines: LineCounter): number | null {
  if (typeof node !== "object" || node === null || !("range" in node) || !Array.isArray(node.range))
    return null;
  const start: unknown = node.range[0];
  return typeof start === "number" ? lines.linePos(start).line : null;
}

/**
 * Lays `over` on `base` key by key. Lists and single values replace; so do secret references and entries of
 * another `kind`, whose keys would mean nothing beside each other. A section left empty keeps its defaults.
 */
export function overlay(base: unknown, over: unknown): unknown {
  if (!isTree(base) || isSecretRef(base)) return over;
  if (over === null) return base;
  if (!isTree(over) || isSecretRef(over) || changesKind(base, over)) return over;
  const merged = new Map(Object.entries(base));
  for (const [key, value] of Object.entries(over)) {
    merged.set(key, merged.has(key) ? overlay(merged.get(key), value) : value);
  }
  return Object.fromEntries(merged);
}

function changesKind(base: Tree, over: Tree): boolean {
  return "kind" in base && "kind" in over && base["kind"] !== over["kind"];
}
