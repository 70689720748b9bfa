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
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { types } from "node:util";
import { build, type BuildOptions, type Plugin } from "esbuild";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, "dist");
const stampFile = join(dist, "build.json");

const entryPoints = {
  cli: "src/cli/main.ts",
  daemon: "src/app/daemon.ts",
};

/** The writer thread's program: one file that imports nothing else, for the thread's start is what a start waits for. */
const workerEntry = { "writer-worker": "src/store/writer-worker.ts" };

/** Packages that find files beside themselves (native code, WebAssembly) cannot move. */
const external = ["better-sqlite3", "jq-wasm"];

/** CommonJS packages inside an ES module still ask for `require` and their folder. */
const banner =
  'const require = globalThis.process.getBuiltinModule("node:module").createRequire(import.meta.url);';

/** zod brings its messages in fifty languages, half a megabyte to parse at each start; ours are in English. */
const withoutLocales: Plugin = {
  name: "without-locales",
  setup: (bundler) => {
    bundler.onLoad({ filter: /zod\/v4\/locales\/index\.c?js$/ }, () => ({ contents: "export {};" }));
  },
};

/**
 * An ES import of a built-in module reads all its exports, some of which load further parts of Node (node:http its
 * whole own undici, node:worker_threads the web locks): 15 ms. Taken from the module itself, only what is named is read.
 */
function withBuiltinsOnDemand(code: string): string {
  const named = /\bimport\s*\{([^}]*)\}\s*from\s*("node:[^"]+");/g;
  const whole = /\bimport\s*(?:\*\s*as\s|\s)\s*([\w$]+)\s+from\s*("node:[^"]+");/g;
  const rewritten = code
    .replaceAll(named, (_, names: string, from: string) => {
      return `const {${names.replaceAll(" as ", ": ")}} = globalThis.process.getBuiltinModule(${from});`;
    })
    .replaceAll(
      whole,
      (_, name: string, from: string) => `const ${name} = globalThis.process.getBuiltinModule(${from});`,
    );
  if (/\bfrom\s*"node:/.test(rewritten)) throw new Error("an import of a built-in module has another form");
  return rewritten;
}

/** Fastify could serve these protocols as well; we never ask it to, so they are loaded if somebody does. */
const lazyProtocols: Plugin = {
  name: "lazy-protocols",
  setup: (bundler) => {
    bundler.onResolve({ filter: /^node:https?2?$/ }, ({ path, kind, importer }) =>
      kind === "require-call" && importer.includes("/fastify/") && path !== "node:http"
        ? { path, namespace: "lazy-protocols" }
        : undefined,
    );
    bundler.onLoad({ filter: /^/, namespace: "lazy-protocols" }, ({ path }) => ({
      contents: `module.exports = new Proxy({}, { get: (_, name) => globalThis.process.getBuiltinModule("${path}")[name] });`,
    }));
  },
};

/**
 * Packages that a start does not need, by what is imported of them. Each becomes a file of its own that is read,
 * compiled and run at the first use of one of its names: zod and yaml alone are a third of a start.
 */
const deferred: ReadonlyMap<string, readonly string[]> = new Map([
  ["zod", ["z"]],
  ["yaml", ["LineCounter", "parseDocument", "stringify"]],
  // Of Fastify: versions of plugins, schemas of routes, requests without a network. We use none of these.
  ["semver", []],
  ["@fastify/ajv-compiler", []],
  ["@fastify/fast-json-stringify-compiler", []],
  ["light-my-request", []],
]);

/** JavaScript of a value that stands for another one, which is looked up whenever it is used. */
const standIn = (value: string): string =>
  `new Proxy(function () {}, { get: (_, name) => ${value}[name], ` +
  `apply: (_, self, args) => ${value}(...args), construct: (_, args) => new ${value}(...args) })`;

/** `files`: the deferred packages' own files, relative to `dist`. */
const deferredPackages = (files: ReadonlyMap<string, string>): Plugin => ({
  name: "deferred-packages",
  setup: (bundler) => {
    bundler.onResolve({ filter: /^[a-z@]/ }, ({ path, kind }) =>
      files.has(path) ? { path, namespace: "deferred", pluginData: kind } : undefined,
    );
    bundler.onLoad({ filter: /^/, namespace: "deferred" }, ({ path, pluginData: kind }) => {
      const file = JSON.stringify(`./${files.get(path) ?? ""}`);
      const start = `const file = ${file}, load = () => require(file);`; // not a literal: stays a file of its own
      const named = (deferred.get(path) ?? []).map(
        (name) => `export const ${name} = ${standIn(`(load().${name})`)};`,
      );
      const all = kind === "require-call" ? [`module.exports = ${standIn("(load())")};`] : named;
      return { contents: [start, ...all].join("\n") };
    });
  },
});

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
  const shared: BuildOptions & { write: false } = {
    absWorkingDir: root,
    outdir: dist,
    bundle: true,
    platform: "node",
    target: "node24",
    minifySyntax: true,
    minifyWhitespace: true, // names stay as they are; a third less to read, to hash and to keep in memory
    lineLimit: 160, // so that a stack trace still leads to the place
    legalComments: "none",
    write: false,
    logLevel: "warning",
  };
  const late = await build({
    ...shared,
    entryPoints: Object.fromEntries([...deferred.keys()].map((name) => [basename(name), name])),
    entryNames: "[name]-[hash]",
    format: "cjs",
    outExtension: { ".js": ".cjs" },
    plugins: [withoutLocales],
  });
  const lateFiles = late.outputFiles.map(({ path }) => relative(dist, path));
  const fileOf = (name: string): string =>
    lateFiles.find((file) => file.startsWith(`${basename(name)}-`)) ?? "";
  const worker = await build({
    ...shared,
    entryPoints: workerEntry,
    format: "cjs",
    outExtension: { ".js": ".cjs" },
    external,
  });
  const main = await build({
    ...shared,
    entryPoints: Object.fromEntries(present),
    chunkNames: "[name]-[hash]", // beside the entry points, so that the deferred files are beside everything
    splitting: true,
    format: "esm",
    external,
    plugins: [
      withoutLocales,
      deferredPackages(new Map([...deferred.keys()].map((name) => [name, fileOf(name)]))),
      lazyProtocols,
      lateCommonJs,
    ],
    banner: { js: banner },
  });
  const files = [...late.outputFiles, ...worker.outputFiles, ...main.outputFiles].map((file) => ({
    name: relative(dist, file.path),
    contents: file.path.endsWith(".js") ? withBuiltinsOnDemand(file.text) : file.text,
  }));
  for (const { name, contents } of files) writeWhole(join(dist, name), contents);
  const stamp: Stamp = { sources, files: files.map(({ name }) => name) };
  writeWhole(stampFile, JSON.stringify(stamp));
  prune(new Set([...stamp.files, ...formerFiles, "build.json"]));
  console.log(`built ${files.length} files in ${Math.round(performance.now() - started)} ms`);
}

/** Somebody who starts at this moment reads the old file or the new one, never half of one. */
function writeWhole(path: string, contents: string): void {
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, contents);
  renameSync(draft, path);
}

function prune(keep: ReadonlySet<string>): void {
  for (const file of globSync("**/*.{js,cjs,tmp}", { cwd: dist })) {
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
