/**
 * Where file tools may reach. A path is resolved, its folder is opened, and what counts is the place of the
 * opened folder: everything after that happens relative to it and follows no link. A link that is put in place
 * between check and use leads nowhere, because nothing is looked up by its full path a second time.
 */
import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readlink, realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, normalize, resolve, sep } from "node:path";

export interface FileRootsOptions {
  /** `workspace` (the agent's folder) or absolute paths. */
  readonly roots: readonly string[];
  /** Out of reach inside every root, except for the agent's own workspace: the daemon's home. */
  readonly hidden: readonly string[];
}

export interface Refusal {
  readonly kind: "refused";
  readonly message: string;
}

export interface Located {
  readonly kind: "located";
  readonly folder: PinnedFolder;
  /** Name of the entry in the folder; it holds no separator. */
  readonly name: string;
}

const MAX_PATH_BYTES = 4_096;
/** Kernel state and devices look like files and are none. */
const PSEUDO = ["/proc", "/sys", "/dev"];

/** True for a relative path that does not climb out: it names a place in the workspace, links aside. */
export function staysInWorkspace(path: string): boolean {
  const normal = normalize(path);
  return !isAbsolute(path) && normal !== ".." && !normal.startsWith(`..${sep}`);
}

/** An open folder. Disposing closes it. */
export class PinnedFolder implements AsyncDisposable {
  readonly #handle: FileHandle;
  /** Its real path when it was opened. */
  readonly path: string;

  constructor(handle: FileHandle, path: string) {
    this.#handle = handle;
    this.path = path;
  }

  /**
   * A path of an entry that goes through the open folder, wherever that has been moved to. Systems without
   * `/proc` have no such path; there the folder's own is used.
   */
  at(name: string): string {
    return process.platform === "linux" ? `/proc/self/fd/${this.#handle.fd}/${name}` : join(this.path, name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}

export class FileRoots {
  readonly #options: FileRootsOptions;

  constructor(options: FileRootsOptions) {
    this.#options = options;
  }

  /**
   * Finds the folder and name behind `path`; relative paths start at `workspace`.
   * `follow`: a link at the end is followed (reading, writing) or meant itself (deleting).
   * `create`: missing folders are made. Rejects with the system's error where something is missing or closed.
   * The caller disposes `folder`.
   */
  async locate(
    path: string,
    workspace: string,
    how: { readonly follow: boolean; readonly create: boolean },
  ): Promise<Located | Refusal> {
    const malformed = checkText(path);
    if (malformed !== null) return malformed;
    const area = await this.#area(path, workspace);
    const absolute = resolve(workspace, path);
    if (!area.contains(absolute)) return outside(path, area);
    const target = how.follow ? await followLink(absolute) : absolute;
    if (target === null) return refuse(`\`${path}\` is a link that leads nowhere; delete it first`);
    if (area.roots.includes(target)) return refuse(`\`${path}\` is a folder, not a file`);
    const folder = await openFolder(dirname(target), area, how.create);
    return folder === null ? outside(path, area) : { kind: "located", folder, name: basename(target) };
  }

  /** A relative path is a promise that only the workspace is touched; it decides about approval. */
  async #area(path: string, workspace: string): Promise<Area> {
    const everywhere = this.#options.roots.map((root) => (root === "workspace" ? workspace : root));
    const wanted = staysInWorkspace(path) ? everywhere.filter((root) => root === workspace) : everywhere;
    const [home = null] = await realPaths([workspace]);
    return new Area([...wanted, ...(await realPaths(wanted))], await realPaths(this.#options.hidden), home);
  }
}

/** The folders that one call may touch. */
class Area {
  /** As configured and as they really are. */
  readonly roots: readonly string[];
  readonly #hidden: readonly string[];
  readonly #workspace: string | null;

  constructor(roots: readonly string[], hidden: readonly string[], workspace: string | null) {
    this.roots = roots;
    this.#hidden = hidden;
    this.#workspace = workspace;
  }

  contains(path: string): boolean {
    if (!this.roots.some((root) => isInside(path, root))) return false;
    if (PSEUDO.some((place) => isInside(path, place))) return false;
    if (this.#workspace !== null && isInside(path, this.#workspace)) return true;
    return !this.#hidden.some((place) => isInside(path, place));
  }
}

function checkText(path: string): Refusal | null {
  if (path === "" || path.includes("\0")) return refuse("a path must not be empty or hold NUL characters");
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return refuse(`a path has at most ${MAX_PATH_BYTES} bytes`);
  return null;
}

/** The place that a link at the end of `absolute` leads to; the path itself where there is no link; null if dangling. */
async function followLink(absolute: string): Promise<string | null> {
  const entry = await orMissing(lstat(absolute));
  return entry?.isSymbolicLink() === true ? orMissing(realpath(absolute)) : absolute;
}

/** Opens `path`, or null if it is outside of the area. */
async function openFolder(path: string, area: Area, create: boolean): Promise<PinnedFolder | null> {
  const { existing, missing } = create ? await splitMissing(path) : { existing: path, missing: [] };
  let folder = await pin(await realpath(existing));
  for (const name of missing) {
    if (!area.contains(folder.path)) break;
    await using parent = folder;
    await orExists(mkdir(parent.at(name)));
    folder = await pin(parent.at(name));
  }
  if (area.contains(folder.path)) return folder;
  await folder[Symbol.asyncDispose]();
  return null;
}

/** The nearest ancestor that exists, and the names below it that do not. A dangling link counts as existing. */
async function splitMissing(
  path: string,
): Promise<{ readonly existing: string; readonly missing: readonly string[] }> {
  const missing: string[] = [];
  let existing = path;
  while ((await orMissing(lstat(existing))) === null && dirname(existing) !== existing) {
    missing.unshift(basename(existing));
    existing = dirname(existing);
  }
  return { existing, missing };
}

/** Opens a folder without following a link at its end, and asks the system where the open folder is. */
async function pin(path: string): Promise<PinnedFolder> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    return new PinnedFolder(handle, await placeOf(handle, path));
  } catch (thrown) {
    await handle.close();
    throw thrown;
  }
}

async function placeOf(handle: FileHandle, path: string): Promise<string> {
  if (process.platform === "linux") return readlink(`/proc/self/fd/${handle.fd}`);
  const place = await realpath(path);
  const [opened, found] = await Promise.all([handle.stat(), stat(place)]);
  if (opened.ino !== found.ino || opened.dev !== found.dev)
    throw new Error("the folder was replaced meanwhile");
  return place;
}

const isInside = (path: string, root: string): boolean =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);

async function realPaths(paths: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(paths.map((path) => orMissing(realpath(path))));
  return found.filter((path) => path !== null);
}

/** Null where there is no such entry. */
export async function orMissing<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise;
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT" || errorCode(thrown) === "ENOTDIR") return null;
    throw thrown;
  }
}

async function orExists(promise: Promise<unknown>): Promise<void> {
  try {
    await promise;
  } catch (thrown) {
    if (errorCode(thrown) !== "EEXIST") throw thrown;
  }
}

/** The system's name of an error, such as ENOENT. */
export function errorCode(thrown: unknown): string | undefined {
  return thrown instanceof Error && "code" in thrown && typeof thrown.code === "string"
    ? thrown.code
    : undefined;
}

const outside = (path: string, area: Area): Refusal =>
  refuse(
    area.roots.length === 0
      ? `\`${path}\` is not reachable: tools.files.roots does not include the workspace`
      : `\`${path}\` is outside of the folders that file tools may use; stay in the workspace`,
  );

const refuse = (message: string): Refusal => ({ kind: "refused", message });
