/**
 * Bundles the sources into `dist/`: one file per entry point, shared parts as chunks that load on demand.
 * Does nothing if nothing has changed; `--force` builds anyway. A daemon that runs from an older build keeps
 * working: chunks are named by content, and those of the build before this one stay.
 */
import { createHash } from "node:crypto";
import {
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire, isBuiltin } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { types } from "node:util";
import { build, type Plugin } from "esbuild";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, "dist");
const stampFile = join(dist, "build.json");

const entryPoints = {
  cli: "src/cli/main.ts",
  daemon: "src/app/daemon.ts",
  "writer-worker": "src/store/writer-worker.ts",
};

/** Packages that find files beside themselves (native code, WebAssembly) cannot move. */
const external = ["better-sqlite3", "jq-wasm"];

/** CommonJS packages inside an ES module still ask for `require` and their folder. */
const banner = [
  'import { createRequire as __createRequire } from "node:module";',
  "const require = __createRequire(import.meta.url);",
].join("\n");

/** zod brings its messages in fifty languages, half a megabyte to parse at each start; ours are in English. */
const withoutLocales: Plugin = {
  name: "without-locales",
  setup: (bundler) => {
    bundler.onLoad({ filter: /zod\/v4\/locales\/index\.js$/ }, () => ({ contents: "export {};" }));
  },
};

/**
 * An ES import of node:http reads all its exports, one of which loads Node's whole own undici: 10 ms for nothing.
 * As a plain object it gives what is asked for.
 */
const lazyHttp: Plugin = {
  name: "lazy-http",
  setup: (bundler) => {
    bundler.onResolve({ filter: /^(node:)?http$/ }, () => ({ path: "http", namespace: "lazy-http" }));
    bundler.onLoad({ filter: /^/, namespace: "lazy-http" }, () => ({
      contents: 'module.exports = process.getBuiltinModule("node:http");',
    }));
  },
};

/**
 * A CommonJS package that is imported late comes out of the bundle as a default export alone. This gives it back
 * the names that Node would have found.
 */
const lateCommonJs: Plugin = {
  name: "late-commonjs",
  setup: (bundler) => {
    const require = createRequire(import.meta.url);
    bundler.onResolve({ filter: /^[a-z@]/ }, ({ kind, path }) => {
      if (kind !== "dynamic-import" || isBuiltin(path) || external.includes(path)) return undefined;
      return { path, namespace: "late-commonjs" };
    });
    bundler.onLoad({ filter: /^/, namespace: "late-commonjs" }, ({ path }) => {
      const loaded: unknown = require(path);
      const from = JSON.stringify(path);
      const isEsModule = types.isModuleNamespaceObject(loaded);
      const names = isEsModule
        ? []
        : Object.keys(Object(loaded)).filter((name) => /^[A-Za-z_$][\w$]*$/.test(name));
      const own = names.filter((name) => name !== "default").join(", ");
      const contents = isEsModule
        ? `export * from ${from};`
        : `import all from ${from};\nexport default all;\nexport const { ${own} } = all;`;
      return { contents, resolveDir: root };
    });
  },
};

interface Stamp {
  readonly sources: string;
  readonly files: readonly string[];
}

const sources = fingerprint();
const former = readStamp();
const complete = former?.files.every((file) => existsSync(join(dist, file))) ?? false;
if (former?.sources === sources && complete && !process.argv.includes("--force")) {
  process.exitCode = 0;
} else {
  await bundle(former?.files ?? []);
}

async function bundle(formerFiles: readonly string[]): Promise<void> {
  const started = performance.now();
  const present = Object.entries(entryPoints).filter(([, file]) => existsSync(join(root, file)));
  const result = await build({
    absWorkingDir: root,
    entryPoints: Object.fromEntries(present),
    outdir: dist,
    chunkNames: "chunks/[name]-[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node24",
    external,
    minifySyntax: true,
    legalComments: "none",
    plugins: [withoutLocales, lazyHttp, lateCommonJs],
    banner: { js: banner },
    write: false,
    logLevel: "warning",
  });
  const files = result.outputFiles.map((file) => ({
    name: relative(dist, file.path),
    contents: file.contents,
  }));
  for (const { name, contents } of files) writeWhole(join(dist, name), contents);
  const stamp: Stamp = { sources, files: files.map(({ name }) => name) };
  writeWhole(stampFile, JSON.stringify(stamp));
  prune(new Set([...stamp.files, ...formerFiles, "build.json"]));
  console.log(`built ${files.length} files in ${Math.round(performance.now() - started)} ms`);
}

/** Somebody who starts at this moment reads the old file or the new one, never half of one. */
function writeWhole(path: string, contents: string | Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, contents);
  renameSync(draft, path);
}

function prune(keep: ReadonlySet<string>): void {
  for (const file of globSync("**/*.{js,tmp}", { cwd: dist })) {
    if (!keep.has(file)) rmSync(join(dist, file), { force: true });
  }
}

/** Changes whenever an input may have changed; time and size stand for content, which need not be read. */
function fingerprint(): string {
  const hash = createHash("sha256");
  const inputs = ["src/**/*.ts", "scripts/build.ts", "package.json", "package-lock.json"];
  for (const file of globSync(inputs, { cwd: root }).toSorted()) {
    const { mtimeMs, size } = statSync(join(root, file));
    hash.update(`${file}\0${mtimeMs}\0${size}\0`);
  }
  return hash.digest("hex");
}

function readStamp(): Stamp | null {
  try {
    const content: unknown = JSON.parse(readFileSync(stampFile, "utf8"));
    return isStamp(content) ? content : null;
  } catch {
    return null; // never built, or interrupted: build
  }
}

function isStamp(value: unknown): value is Stamp {
  return typeof value === "object" && value !== null && "sources" in value && "files" in value;
}
