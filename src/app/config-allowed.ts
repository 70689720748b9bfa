import { type JsonSchema, isJsonObject } from "./config-schema.ts";

/** What the JSON Schema allows at a path, in words. */
export const describeAllowed = (schema: JsonSchema, path: readonly PropertyKey[]): string =>
  describe(schemaAt(schema, path));

function schemaAt(schema: JsonSchema, path: readonly PropertyKey[]): JsonSchema {
  let nodes: readonly JsonSchema[] = [schema];
  for (const key of path) nodes = nodes.flatMap(alternatives).flatMap((node) => childAt(node, key));
  const [only, ...others] = nodes;
  return only !== undefined && others.length === 0 ? only : { anyOf: nodes };
}

/** The known keys of the group at a path. */
export function keysAt(schema: JsonSchema, path: readonly PropertyKey[]): readonly string[] {
  return alternatives(schemaAt(schema, path)).flatMap((node) =>
    isJsonObject(node["properties"]) ? Object.keys(node["properties"]) : [],
  );
}

function childAt(node: JsonSchema, key: PropertyKey): readonly JsonSchema[] {
  const { properties, additionalProperties, items } = node;
  if (isJsonObject(properties)) {
    const child = properties[String(key)];
    return isJsonObject(child) ? [child] : [];
  }
  return [additionalProperties, items].filter(isJsonObject);
}

/** The node itself, or the nodes of which one has to fit. */
function alternatives(node: JsonSchema): readonly JsonSchema[] {
  const options = node["anyOf"] ?? node["oneOf"];
  return Array.isArray(options) ? options.filter(isJsonObject).flatMap(alternatives) : [node];
}

function describe(node: JsonSchema): string {
  return [...new Set(alternatives(node).map(describeOne))].join(", or ");
}

function describeOne(node: JsonSchema): string {
  if ("const" in node) return String(node["const"]);
  if (Array.isArray(node["enum"])) return `one of ${node["enum"].join(", ")}`;
  switch (node["type"]) {
    case "integer":
      return `a whole number${range(node)}`;
    case "number":
      return `a number${range(node)}`;
    case "boolean":
      return "true or false";
    case "null":
      return "null";
    case "array":
      return isJsonObject(node["items"]) ? `a list, each item ${describe(node["items"])}` : "a list";
    case "object":
      return describeObject(node);
    case "string":
      return describeText(node);
    default:
      return "another value";
  }
}

function describeText(node: JsonSchema): string {
  const format = node["format"];
  if (typeof format === "string") return formats.get(format) ?? `a text in ${format} form`;
  return "pattern" in node ? `a text that matches ${String(node["pattern"])}` : "a text";
}

const formats: ReadonlyMap<string, string> = new Map([
  ["uri", "a URL that begins with http:// or https://"],
  ["ipv4", "an IP address"],
  ["ipv6", "an IP address"],
  ["cidrv4", "a range such as 10.0.0.0/8"],
  ["cidrv6", "a range such as fd00::/8"],
]);

function describeObject(node: JsonSchema): string {
  const keys = isJsonObject(node["properties"]) ? Object.keys(node["properties"]) : [];
  return keys.length === 1 ? `{ ${keys[0]}: … }` : "a group of keys";
}

/** JSON Schema of zod's integers carries the safe-integer bounds; those say nothing to a person. */
function range(node: JsonSchema): string {
  const least = bound(node["minimum"]);
  const most = bound(node["maximum"]);
  if (least !== null && most !== null) return ` from ${least} to ${most}`;
  if (least !== null) return ` of at least ${least}`;
  return most === null ? "" : ` of at most ${most}`;
}

const bound = (value: unknown): number | null =>
  typeof value === "number" && Math.abs(value) < Number.MAX_SAFE_INTEGER ? value : null;
