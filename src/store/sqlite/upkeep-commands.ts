import type Database from "better-sqlite3";
import type { AttachmentId } from "../../domain/ids.ts";

export interface AttachmentRow {
  readonly id: AttachmentId;
  readonly mime: string;
  readonly size: number;
  /** When the bytes were last handed in, milliseconds since the epoch; null keeps them for good. */
  readonly putAt: number | null;
}

export interface Purged {
  readonly rows: number;
  /** Their files go after the commit. */
  readonly attachments: readonly AttachmentId[];
}

/** What keeps the database small and known to work. */
export class UpkeepCommands {
  readonly #probe: Database.Statement<[string]>;
  readonly #putAttachment: Database.Statement<[string, string, number, number | null]>;
  readonly #purgeSessions: Database.Statement<[number, number, number]>;
  readonly #purgeKeys: Database.Statement<[number, number]>;
  readonly #purgeAttachments: Database.Statement<[number, number], AttachmentId>;

  constructor(db: Database.Database) {
    this.#probe = db.prepare("INSERT OR REPLACE INTO kv (name, value) VALUES ('probe', ?)");
    this.#putAttachment = db.prepare(`
      INSERT INTO attachments (id, mime, size, put_at) VALUES (?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET put_at = max(put_at, excluded.put_at)`);
    // A session of ephemeral runs goes as a whole, once the last of them is old; foreign keys cascade.
    this.#purgeSessions = db.prepare(`
      DELETE FROM sessions WHERE ephemeral = 1 AND key IN (
        SELECT r.session FROM runs r
        WHERE r.ephemeral = 1 AND r.ended_at IS NOT NULL AND r.ended_at < ? AND NOT EXISTS (
          SELECT 1 FROM runs o WHERE o.session = r.session AND (o.ended_at IS NULL OR o.ended_at >= ?))
        LIMIT ?)`);
    this.#purgeKeys = db.prepare(`
      DELETE FROM idempotency WHERE (token, route, key) IN (
        SELECT token, route, key FROM idempotency WHERE created_at < ? LIMIT ?)`);
    this.#purgeAttachments = db
      .prepare<[number, number], AttachmentId>(
        `DELETE FROM attachments WHERE id IN (
          SELECT id FROM attachments a WHERE put_at < ? AND NOT EXISTS (
            SELECT 1 FROM attachment_uses u WHERE u.attachment = a.id)
          LIMIT ?)
        RETURNING id`,
      )
      .pluck();
  }

  probe(at: number): void {
    this.#probe.run(String(at));
  }

  putAttachment({ id, mime, size, putAt }: AttachmentRow): void {
    this.#putAttachment.run(id, mime, size, putAt);
  }

  /** Removes at most `limit` of each kind. */
  purge({ before, limit }: { readonly before: number; readonly limit: number }): Purged {
    const sessions = this.#purgeSessions.run(before, before, limit).changes;
    const keys = this.#purgeKeys.run(before, limit).changes;
    const attachments = this.#purgeAttachments.all(before, limit);
    return { rows: sessions + keys + attachments.length, attachments };
  }
}
