/** `read_file`, `write_file`, `delete_file`: regular text files inside the configured folders. */
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, lstat, open, rename, unlink } from "node:fs/promises";
import { isAbsolute, normalize } from "node:path";
import { z } from "zod";
import { lazily } from "../kernel/lazily.ts";
import { defineTool, failed, succeeded } from "./define-tool.ts";
import { binaryKind } from "./file-kind.ts";
import { formatBytes, fromOutside } from "./model-text.ts";
import { withoutCutEnd } from "./output-buffer.ts";
import { errorCode, type FileRoots, type Located, orMissing, staysInWorkspace } from "./paths.ts";
import type { Tool, ToolContext, ToolResult } from "./tool.ts";

const MAX_READ_BYTES = 262_144;
const MAX_WRITE_BYTES = 1_048_576;

const pathArgument = lazily(() => z.string().min(1).describe("Relative to the workspace, or absolute"));

export function readFileTool(roots: FileRoots): Tool {
  return defineTool({
    name: "read_file",
    description: `Read a text file (the first ${formatBytes(MAX_READ_BYTES)} of a longer one).`,
    input: z.strictObject({ path: pathArgument() }),
    minAutonomy: "read_only",
    leastEffect: "none",
    effect: () => "none",
    pattern: (args) => normalize(args.path),
    summary: (args) => args.path,
    run: (args, context) =>
      withFile(roots, args.path, context, { follow: true, create: false }, (file) => read(file, args.path)),
  });
}

export function writeFileTool(roots: FileRoots): Tool {
  const content = z
    .string()
    .refine(
      (text) => Buffer.byteLength(text) <= MAX_WRITE_BYTES,
      `must not exceed ${formatBytes(MAX_WRITE_BYTES)}; split it into several files`,
    )
    .describe("The whole new text of the file");
  return defineTool({
    name: "write_file",
    description: "Create a text file or replace the whole of it. Missing folders are made.",
    input: z.strictObject({ path: pathArgument(), content }),
    ...changing,
    summary: (args) => `${args.path} (${formatBytes(Buffer.byteLength(args.content))})`,
    run: (args, context) =>
      withFile(roots, args.path, context, { follow: true, create: true }, (file) =>
        write(file, args.path, args.content),
      ),
  });
}

export function deleteFileTool(roots: FileRoots): Tool {
  return defineTool({
    name: "delete_file",
    description: "Delete a file.",
    input: z.strictObject({ path: pathArgument() }),
    ...changing,
    summary: (args) => args.path,
    run: (args, context) => {
      const absent = succeeded(`${args.path} did not exist; nothing to delete.`);
      const how = { follow: false, create: false, absent };
      return withFile(roots, args.path, context, how, (file) => remove(file, args.path));
    },
  });
}

/** The workspace is the agent's own; anywhere else a person is asked, and may allow exactly that file. */
const changing = {
  minAutonomy: "supervised",
  leastEffect: "internal",
  effect: (args: { readonly path: string }) => (staysInWorkspace(args.path) ? "internal" : "external"),
  pattern: (args: { readonly path: string }) => (isAbsolute(args.path) ? normalize(args.path) : null),
} as const;

/** Locates, works, closes; turns the system's refusals into sentences. `absent` answers for what is missing. */
async function withFile(
  roots: FileRoots,
  path: string,
  context: ToolContext,
  how: { readonly follow: boolean; readonly create: boolean; readonly absent?: ToolResult },
  work: (file: Located) => Promise<ToolResult>,
): Promise<ToolResult> {
  if (context.signal.aborted) return failed("Cancelled; nothing was done.");
  try {
    const located = await roots.locate(path, context.workspace, how);
    if (located.kind === "refused") return failed(`Refused: ${located.message}.`);
    await using folder = located.folder;
    return await work({ ...located, folder });
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code === undefined) throw thrown;
    if (code === "ENOENT" && how.absent !== undefined) return how.absent;
    return failed(`${path}: ${explain(code)}.`);
  }
}

async function read({ folder, name }: Located, path: string): Promise<ToolResult> {
  const entry = await lstat(folder.at(name));
  if (!entry.isFile()) return failed(notRegular(path, entry.isDirectory()));
  // Looked at before it is opened, because opening a device may do something, and again afterwards.
  await using file = await open(
    folder.at(name),
    constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
  );
  const { size, ...opened } = await statOf(file);
  if (!opened.regular) return failed(notRegular(path, false));
  const bytes = await readStart(file, MAX_READ_BYTES + 1);
  const kind = binaryKind(bytes);
  if (kind !== null) return failed(`${path} is not text (${kind}, ${formatBytes(size)}); it is not shown.`);
  if (bytes.length <= MAX_READ_BYTES) return succeeded(fromOutside(path, bytes.toString("utf8")));
  const start = withoutCutEnd(bytes.subarray(0, MAX_READ_BYTES)).toString("utf8");
  const note = `[the first ${formatBytes(MAX_READ_BYTES)} of ${formatBytes(size)}; use a shell tool for the rest]`;
  return succeeded(`${fromOutside(path, start)}\n${note}`);
}

async function statOf(file: FileHandle): Promise<{ readonly size: number; readonly regular: boolean }> {
  const stats = await file.stat();
  return { size: stats.size, regular: stats.isFile() };
}

/** Reads until `length` bytes or the end; a file's reported size is not to be trusted. */
async function readStart(file: FileHandle, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(buffer, filled, length - filled, filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

/** Writes beside the file and moves the result into place: readers see the old text or the new one. */
async function write({ folder, name }: Located, path: string, content: string): Promise<ToolResult> {
  const existing = await orMissing(lstat(folder.at(name)));
  if (existing !== null && !existing.isFile()) return failed(notRegular(path, existing.isDirectory()));
  const temporary = folder.at(`.beamclaw-${randomBytes(8).toString("hex")}.tmp`);
  try {
    await writeNew(temporary, content, existing === null ? null : existing.mode & 0o777);
    await rename(temporary, folder.at(name));
  } catch (thrown) {
    await unlink(temporary).catch(() => {}); // it may not have been created
    throw thrown;
  }
  return succeeded(`ok: ${path} written (${formatBytes(Buffer.byteLength(content))}).`);
}

async function writeNew(file: string, content: string, mode: number | null): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  await using handle = await open(file, flags, 0o644);
  await handle.writeFile(content, "utf8");
  if (mode !== null) await handle.chmod(mode);
  await handle.sync(); // the call counts as done once its result is stored; the file must not be lost then
}

async function remove({ folder, name }: Located, path: string): Promise<ToolResult> {
  const entry = await lstat(folder.at(name));
  if (!entry.isFile() && !entry.isSymbolicLink()) return failed(notRegular(path, entry.isDirectory()));
  await unlink(folder.at(name));
  return succeeded(`ok: ${path} deleted.`);
}

const notRegular = (path: string, isFolder: boolean): string =>
  `${path} is ${isFolder ? "a folder" : "a device, pipe or link"}; only regular files can be used here.`;

/** The usual refusals of the system in words; the rest by their names. */
function explain(code: string): string {
  switch (code) {
    case "ENOENT":
      return "no such file or folder; check the path";
    case "ENOTDIR":
      return "a part of the path is a file, not a folder";
    case "EACCES":
    case "EPERM":
      return "the system does not permit it";
    case "ELOOP":
      return "there is a link where none is followed; use the path it leads to";
    case "ENOSPC":
    case "EDQUOT":
      return "the disk is full; nothing was changed";
    case "EROFS":
      return "the disk is read-only";
    case "ENAMETOOLONG":
      return "a name in the path is too long";
    default:
      return `the system says ${code}`;
  }
}
