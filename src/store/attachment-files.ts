import { createHash, randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { access, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type AttachmentId, asId } from "../domain/ids.ts";

const attachmentId = /^[0-9a-f]{64}$/;

/** An id is a file's path in the end, so nothing but a hash may pass for one. */
export const isAttachmentId = (text: string): text is AttachmentId => attachmentId.test(text);

export const attachmentIdOf = (bytes: Uint8Array): AttachmentId =>
  asId<AttachmentId>(createHash("sha256").update(bytes).digest("hex"));

/** Files named by the hash of their content, in 256 folders. A file is there whole or not at all. */
export class AttachmentFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** On the disk (fsynced) when it resolves. */
  async write(id: AttachmentId, bytes: Uint8Array): Promise<void> {
    const path = this.#path(id);
    if (await exists(path)) return;
    const folder = dirname(path);
    const created = await mkdir(folder, { recursive: true, mode: 0o700 });
    const draft = join(folder, `.${randomUUID()}.part`);
    try {
      await writeSynced(draft, bytes);
      await rename(draft, path);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
    await syncFolder(folder);
    // A folder that has just been made is only as lasting as its entry in its parent.
    if (created !== undefined) await syncFolder(dirname(folder));
  }

  /** Null where there is no such file. */
  async read(id: AttachmentId): Promise<Uint8Array | null> {
    try {
      return await readFile(this.#path(id));
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  /** Synchronous, so that nothing can come between a caller's check and the removal. */
  remove(id: AttachmentId): void {
    rmSync(this.#path(id), { force: true });
  }

  #path(id: AttachmentId): string {
    return join(this.#folder, id.slice(0, 2), id.slice(2));
  }
}

async function writeSynced(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
