import { isTree } from "./config-file.ts";

/** The value at a path; undefined where there is none. */
export function at(value: unknown, path: readonly PropertyKey[]): unknown {
  let node: unknown = value;
  for (const key of path) {
    if (Array.isArray(node)) node = node[Number(key)];
    else if (isTree(node) && Object.hasOwn(node, String(key))) node = node[String(key)];
    else return undefined;
  }
  return node;
}

/** The paths in `value` that fit a pattern whose `*` stands for any key. */
export function expandPath(value: unknown, pattern: readonly string[]): readonly (readonly string[])[] {
  const [first, ...rest] = pattern;
  if (first === undefined) return [[]];
  if (!isTree(value)) return [];
  const keys = first === "*" ? Object.keys(value) : [first].filter((key) => Object.hasOwn(value, key));
  return keys.flatMap((key) => expandPath(value[key], rest).map((path) => [key, ...path]));
}
