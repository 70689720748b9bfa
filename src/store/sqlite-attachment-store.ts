import type Database from "better-sqlite3";
import type { AttachmentId } from "../domain/ids.ts";
import type { ContentPart, WireMessage } from "../domain/message.ts";
import type { Clock } from "../kernel/clock.ts";
import { AttachmentFiles, attachmentIdOf, isAttachmentId } from "./attachment-files.ts";
import type { AttachmentStore } from "./ports.ts";
import { guarded } from "./sqlite/statement.ts";
import { storeIo } from "./sqlite/store-error.ts";
import { attachmentUrl } from "./sqlite/wire.ts";
import type { Writer } from "./writer.ts";

/** Base64 data URLs (RFC 2397); other data URLs stay as they are. */
const dataUrl = /^data:([\w.+-]+\/[\w.+-]+)(?:;[^,;]+)*;base64,/;

/** Bytes as files, their rows in the database. A row is what makes a file ours: one without is a leftover. */
export class SqliteAttachmentStore implements AttachmentStore {
  readonly #writer: Writer;
  readonly #files: AttachmentFiles;
  /** Absent: what is put in is never collected. */
  readonly #clock: Clock | undefined;
  readonly #mime: Database.Statement<[string], string>;

  constructor(db: Database.Database, writer: Writer, folder: string, clock: Clock | undefined) {
    this.#writer = writer;
    this.#files = new AttachmentFiles(folder);
    this.#clock = clock;
    this.#mime = db.prepare<[string], string>("SELECT mime FROM attachments WHERE id = ?").pluck();
  }

  async put(bytes: Uint8Array, mime: string): Promise<AttachmentId> {
    const id = attachmentIdOf(bytes);
    await storeIo(() => this.#files.write(id, bytes));
    const putAt = this.#clock?.now() ?? null;
    await this.#writer.execute("putAttachment", { id, mime, size: bytes.byteLength, putAt });
    // A purge may have removed an older file between the two; from here on the row protects it.
    await storeIo(() => this.#files.write(id, bytes));
    return id;
  }

  async get(id: AttachmentId): ReturnType<AttachmentStore["get"]> {
    if (!isAttachmentId(id)) return null;
    const mime = guarded(() => this.#mime.get(id));
    const bytes = mime === undefined ? null : await storeIo(() => this.#files.read(id));
    return mime === undefined || bytes === null ? null : { bytes, mime };
  }

  /** Removes the files of purged rows; one that was put in again meanwhile has its row back and stays. */
  removeFiles(ids: readonly AttachmentId[]): void {
    for (const id of ids) if (guarded(() => this.#mime.get(id)) === undefined) this.#files.remove(id);
  }

  /** Puts the bytes of data URLs into files; the messages then refer to them as `attachment:<id>`. */
  async takeOut(messages: readonly WireMessage[]): Promise<readonly WireMessage[]> {
    if (!messages.some(hasDataUrl)) return messages;
    return Promise.all(messages.map((message) => this.#withoutDataUrls(message)));
  }

  async #withoutDataUrls(message: WireMessage): Promise<WireMessage> {
    if (message.role !== "user" || typeof message.content === "string") return message;
    const content = await Promise.all(message.content.map((part) => this.#withoutDataUrl(part)));
    return { ...message, content };
  }

  async #withoutDataUrl(part: ContentPart): Promise<ContentPart> {
    if (part.type !== "image_url") return part;
    const { url } = part.image_url;
    const [head, mime] = dataUrl.exec(url) ?? [];
    if (head === undefined || mime === undefined) return part;
    const id = await this.put(Buffer.from(url.slice(head.length), "base64"), mime);
    return { ...part, image_url: { ...part.image_url, url: attachmentUrl(id) } };
  }
}

function hasDataUrl(message: WireMessage): boolean {
  if (message.role !== "user" || typeof message.content === "string") return false;
  return message.content.some((part) => part.type === "image_url" && part.image_url.url.startsWith("data:"));
}
