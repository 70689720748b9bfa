import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

/** Judges JSON by OpenAI's published API description. */
export interface OpenAiSchema {
  /** Complaints about `value` as `components/schemas/NAME`; empty: valid. At most ten. */
  validate(name: string, value: unknown): string[];
}

interface Validator {
  (value: unknown): boolean;
  readonly errors?: readonly { readonly instancePath: string; readonly message?: string }[] | null;
}

type Json = { [key: string]: unknown };

const require = createRequire(import.meta.url);

/**
 * The description in `$BEAMCLAW_TEST_DATA/openai/openapi.json`, or null where that folder is not there: tests
 * then skip, and say so.
 */
export function openaiSchema(): OpenAiSchema | null {
  const folder = process.env["BEAMCLAW_TEST_DATA"];
  if (folder === undefined || folder === "") return null;
  const document = JSON.parse(readFileSync(join(folder, "openai", "openapi.json"), "utf8")) as Json;
  const schemas = (document["components"] as Json)["schemas"] as Json;
  const validators = new Map<string, Validator>();
  return {
    validate(name, value) {
      const validator = validators.get(name) ?? compile(schemas, name);
      validators.set(name, validator);
      if (validator(value)) return [];
      return (validator.errors ?? [])
        .slice(0, 10)
        .map((e) => `${e.instancePath} ${e.message ?? "is invalid"}`);
    },
  };
}

/** Compiles one schema with only what it refers to: the whole description takes seconds. */
function compile(schemas: Json, name: string): Validator {
  const { default: Ajv2020 } = require("ajv/dist/2020.js") as {
    default: new (options: Json) => {
      compile(schema: unknown): Validator;
      addFormat(n: string, f: boolean): void;
    };
  };
  const ajv = new Ajv2020({ strict: false, allErrors: false, validateFormats: true, logger: false });
  for (const format of ["unixtime", "uri", "binary", "date-time", "int64", "float", "double"])
    ajv.addFormat(format, true);
  const reachable: Json = {};
  const visit = (schema: unknown): void => {
    if (Array.isArray(schema)) schema.forEach(visit);
    else if (typeof schema === "object" && schema !== null) {
      const target = refName((schema as Json)["$ref"]);
      if (target !== null && !(target in reachable)) {
        reachable[target] = schemas[target];
        visit(schemas[target]);
      }
      Object.values(schema).forEach(visit);
    }
  };
  visit({ $ref: `#/components/schemas/${name}` });
  return ajv.compile({
    $ref: `#/components/schemas/${name}`,
    components: { schemas: prepare(reachable, "") },
  });
}

function refName(ref: unknown): string | null {
  const prefix = "#/components/schemas/";
  return typeof ref === "string" && ref.startsWith(prefix) ? ref.slice(prefix.length) : null;
}

/** OpenAPI 3.0 remainders to JSON Schema 2020-12: `nullable`, `$recursiveRef`, `$recursiveAnchor`. */
function prepare(schema: unknown, owner: string): unknown {
  if (Array.isArray(schema)) return schema.map((item) => prepare(item, owner));
  if (typeof schema !== "object" || schema === null) return schema;
  const out: Json = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === "$recursiveAnchor" || key === "nullable") continue;
    if (key === "$recursiveRef") out["$ref"] = `#/components/schemas/${owner}`;
    else out[key] = prepare(value, owner === "" ? key : owner);
  }
  if ((schema as Json)["nullable"] !== true) return out;
  if (typeof out["type"] !== "string") return { anyOf: [out, { type: "null" }] };
  out["type"] = [out["type"], "null"];
  if (Array.isArray(out["enum"])) out["enum"] = [...(out["enum"] as unknown[]), null];
  return out;
}
