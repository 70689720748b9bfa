import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

/** Folders in import order: each may import only from itself and from folders before it. */
const layers = ["kernel", "domain", "obs", "store", "tools", "agent", "providers", "gateway", "app", "cli"];

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const src = join(root, "src");

interface Source {
  readonly name: string;
  readonly path: string;
  readonly code: string;
  /** Relative imports, resolved; `runtime` is false for `import type`. */
  readonly imports: readonly { readonly to: string; readonly runtime: boolean }[];
}

const sources: readonly Source[] = readdirSync(src, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => {
    const path = join(src, name);
    const code = withoutComments(readFileSync(path, "utf8"));
    return { name: join("src", name), path, code, imports: importsOf(path, code) };
  });

const layerOf = (path: string): string => relative(src, path).split("/")[0] ?? "";

describe("layers", () => {
  test("every folder of src has its place in the order", () => {
    expect(
      new Set(sources.map(({ path }) => layerOf(path)).filter((layer) => !layers.includes(layer))),
    ).toEqual(new Set());
  });

  test("imports point only towards lower layers", () => {
    const upward = sources.flatMap(({ name, path, imports }) =>
      imports
        .filter(({ to }) => layers.indexOf(layerOf(to)) > layers.indexOf(layerOf(path)))
        .map(
          ({ to }) =>
            `${name} imports ${relative(root, to)}: ${layerOf(path)} may not know ${layerOf(to)}; take a port or a callback`,
        ),
    );
    expect(upward).toEqual([]);
  });

  test("there is no runtime import cycle", () => {
    expect(findCycle()).toEqual([]);
  });
});

/** What only some files may do, and where it belongs instead. */
const sideDoors: readonly { what: RegExp; only: RegExp; cure: string }[] = [
  { what: /process\.env\b/, only: /^src\/app\//, cure: "take the value from the configuration" },
  {
    what: /\bprocess\.exit\(/,
    only: /^$/,
    cure: "let the event loop empty; bin/beamclaw sets the exit code",
  },
  {
    what: /\b(?:setTimeout|setInterval|Date\.now|new Date\(\)|performance\.now)\b/,
    only: /^src\/kernel\/clock\.ts$/,
    cure: "take a Clock",
  },
  {
    what: /["']node:child_process["']/,
    only: /^src\/(?:tools\/process|app\/[a-z-]+|cli\/[a-z-]+)\.ts$/,
    cure: "use runProcess of tools/process.ts",
  },
  { what: /^export default\b/m, only: /^$/, cure: "export by name" },
  { what: /^(?:export )?let\b/m, only: /^$/, cure: "keep mutable state inside an actor or a class" },
  { what: /\bas any\b|: any\b|<any>|@ts-(?:ignore|nocheck|expect-error)/, only: /^$/, cure: "type it" },
  {
    what: /\bVITEST\b|NODE_ENV|forTest|__test/i,
    only: /^$/,
    cure: "production code knows no tests; use a port",
  },
];

test.each(sideDoors.map((door) => [String(door.what), door] as const))(
  "side door %s stays shut",
  (_, door) => {
    const open = sources
      .filter(({ name, code }) => door.what.test(code) && !door.only.test(name))
      .map(({ name }) => `${name}: ${door.cure}`);
    expect(open).toEqual([]);
  },
);

test("files and imports stay small", () => {
  const large = sources.flatMap(({ name, path, imports, code }) => {
    const lines = readFileSync(path, "utf8").split("\n").length;
    const packages = [...code.matchAll(/^(?:import|export)[^;]*?from "[^."][^"]*"/gm)].length;
    return [
      ...(lines > 500 ? [`${name} has ${lines} lines; split it where the type changes`] : []),
      ...(imports.length + packages > 20 && !name.startsWith("src/app/")
        ? [`${name} has ${imports.length + packages} imports`]
        : []),
    ];
  });
  expect(large).toEqual([]);
});

test("nothing in the project names a path outside it or a package registry", () => {
  const bad = [...sources.map(({ path }) => path), join(root, "package-lock.json")]
    .map((path) => [relative(root, path), readFileSync(path, "utf8")] as const)
    .filter(([, text]) => /\/work\/|\.\.\/shared|registry\.npmjs/.test(text))
    .map(([name]) => name);
  expect(bad).toEqual([]);
});

function importsOf(path: string, code: string): Source["imports"] {
  const pattern = /(?:^|\n)\s*(?:import|export)\s+(type\s+)?(?:[^"';]*?\sfrom\s+)?"(\.[^"]+)"/g;
  const statics = [...code.matchAll(pattern)].map((match) => ({
    to: resolve(dirname(path), match[2] ?? ""),
    runtime: match[1] === undefined,
  }));
  const lazy = [...code.matchAll(/\bimport\("(\.[^"]+)"\)/g)].map((match) => ({
    to: resolve(dirname(path), match[1] ?? ""),
    runtime: false,
  }));
  return [...statics, ...lazy];
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|[^:"'`\\])\/\/.*$/gm, "$1");
}

/** Depth-first search for a way back to a file that is still being visited. */
function findCycle(): readonly string[] {
  const byPath = new Map(sources.map((source) => [source.path, source]));
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): readonly string[] => {
    if (trail.includes(path))
      return [...trail.slice(trail.indexOf(path)), path].map((p) => relative(root, p));
    if (done.has(path)) return [];
    for (const { to, runtime } of byPath.get(path)?.imports ?? []) {
      const cycle = runtime ? visit(to, [...trail, path]) : [];
      if (cycle.length > 0) return cycle;
    }
    done.add(path);
    return [];
  };
  for (const { path } of sources) {
    const cycle = visit(path, []);
    if (cycle.length > 0) return cycle;
  }
  return [];
}
