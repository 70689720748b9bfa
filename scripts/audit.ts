/**
 * Audits what is installed, without asking anybody: every package of the lock file has an integrity hash, needs no
 * install script, is not deprecated, and has a licence that we accept; what is installed is what the lock file says.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

interface Locked {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly hasInstallScript?: boolean;
  readonly deprecated?: string;
  readonly license?: string;
  readonly optional?: boolean;
  readonly link?: boolean;
}

const accepted =
  /^(MIT|ISC|0BSD|BSD-[23]-Clause|Apache-2\.0|BlueOak-1\.0\.0|MPL-2\.0|Python-2\.0|CC0-1\.0|Unlicense|Zlib)$/;
/** These declare an install script that we neither run nor need: they ship what it would build or fetch. */
const scriptsNotNeeded = new Set(["better-sqlite3", "esbuild", "fsevents"]);

const root = join(import.meta.dirname, "..");
const lock: { packages: Record<string, Locked> } = JSON.parse(
  readFileSync(join(root, "package-lock.json"), "utf8"),
);

const problems = Object.entries(lock.packages)
  .filter(([path]) => path !== "")
  .flatMap(([path, locked]) => audit(path, locked));

for (const problem of problems) console.error(problem);
console.log(`audited ${Object.keys(lock.packages).length - 1} packages, ${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;

function audit(path: string, locked: Locked): readonly string[] {
  const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
  const found: string[] = [];
  // An optional package for another platform may be listed by name only.
  if (locked.version === undefined) return locked.optional === true ? [] : [`${path}: no version`];
  if (locked.integrity === undefined && locked.optional !== true) found.push(`${path}: no integrity hash`);
  if (locked.resolved !== undefined) found.push(`${path}: names a registry address`);
  if (locked.deprecated !== undefined) found.push(`${path}: deprecated: ${locked.deprecated}`);
  if (locked.hasInstallScript === true && !scriptsNotNeeded.has(name))
    found.push(`${path}: wants to run an install script`);
  if (!licences(locked.license).some((licence) => accepted.test(licence))) {
    found.push(`${path}: licence ${locked.license ?? "unknown"} is not on the list`);
  }
  return [...found, ...installed(path, locked)];
}

function installed(path: string, { version, optional }: Locked): readonly string[] {
  const manifest = join(root, path, "package.json");
  if (!existsSync(manifest)) return optional === true ? [] : [`${path}: is not installed`];
  const actual: { version: string } = JSON.parse(readFileSync(manifest, "utf8"));
  return actual.version === version
    ? []
    : [`${path}: ${actual.version} is installed, the lock says ${version}`];
}

/** `(MIT OR Apache-2.0)` offers a choice; one accepted licence is enough. */
function licences(expression: string | undefined): readonly string[] {
  return (expression ?? "").replace(/[()]/g, "").split(/\s+OR\s+/i);
}
