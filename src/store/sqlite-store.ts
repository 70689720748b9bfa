import type Database from "better-sqlite3";
import type { Clock } from "../kernel/clock.ts";
import { EventFeed } from "./event-feed.ts";
import type { Store } from "./ports.ts";
import { SqliteApprovalStore } from "./sqlite-approval-store.ts";
import { SqliteAttachmentStore } from "./sqlite-attachment-store.ts";
import { SqliteEventStore } from "./sqlite-event-store.ts";
import { SqliteRunStore } from "./sqlite-run-store.ts";
import { SqliteSessionStore } from "./sqlite-session-store.ts";
import { SqliteStepStore } from "./sqlite-step-store.ts";
import { SqliteTokenStore } from "./sqlite-token-store.ts";
import type { WriterBoot } from "./writer-boot.ts";
import { connect, type Connections } from "./sqlite-connections.ts";

export interface SqliteStoreOptions {
  /** Path of the database, or `:memory:` (with `writer: "inline"` only). */
  readonly file: string;
  readonly attachmentsDir: string;
  /** Dates attachments, so that `purge` can collect those that nothing refers to; without it they stay. */
  readonly clock?: Clock;
  /** `thread` in the daemon; `inline` writes in the caller's thread, for tests and simulation. */
  readonly writer: "thread" | "inline";
  /** The writer thread's program, where it is not beside this file (a bundle). */
  readonly workerUrl?: URL;
  /** See `ConnectionOptions`. */
  readonly boot?: WriterBoot;
  /** Trouble that no caller waits for; the death of the writer thread above all. */
  readonly onError?: (error: Error) => void;
}

/**
 * Opens the store, creating and migrating the database as needed. Rejects with `store_unavailable` where the
 * file is damaged, locked, not writable, of a newer schema, or not ours. One process may have it open.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const onError = options.onError ?? (() => undefined);
  const feed = new EventFeed(onError);
  const connections = await connect(options, { onEvents: (events) => feed.publish(events), onError });
  return new SqliteStore(connections, feed, options);
}

class SqliteStore implements Store {
  readonly runs: SqliteRunStore;
  readonly steps: SqliteStepStore;
  readonly approvals: SqliteApprovalStore;
  readonly sessions: SqliteSessionStore;
  readonly events: SqliteEventStore;
  readonly tokens: SqliteTokenStore;
  readonly attachments: SqliteAttachmentStore;
  readonly #reader: Database.Database;
  readonly #writer: Connections["writer"];

  constructor({ reader, writer }: Connections, feed: EventFeed, options: SqliteStoreOptions) {
    this.#reader = reader;
    this.#writer = writer;
    this.attachments = new SqliteAttachmentStore(reader, writer, options.attachmentsDir, options.clock);
    this.runs = new SqliteRunStore(reader, writer, this.attachments);
    this.steps = new SqliteStepStore(reader, writer);
    this.approvals = new SqliteApprovalStore(reader, writer);
    this.sessions = new SqliteSessionStore(reader, writer);
    this.events = new SqliteEventStore(reader, feed);
    this.tokens = new SqliteTokenStore(reader, writer);
  }

  probe(at: number): Promise<void> {
    return this.#writer.execute("probe", at);
  }

  backup(file: string): Promise<void> {
    return this.#writer.backup(file);
  }

  async close(): Promise<void> {
    await this.#writer.close();
    this.#reader.close();
  }
}
