/**
 * The writer thread: owns the connection that writes, runs each batch as one transaction, and answers once per
 * batch. It decides nothing: when to checkpoint and when to close is said by `WriterThread`, which sees the queue.
 */
import { type MessagePort, parentPort } from "node:worker_threads";
import type Database from "better-sqlite3";
import { Unreachable } from "../kernel/errors.ts";
import { backupTo, openForWriting } from "./sqlite/connection.ts";
import { type CommandError, SqliteCore, toCommandError } from "./sqlite/sqlite-core.ts";
import type { FromWriter, ToWriter, WalSize, WriterSetup } from "./writer-protocol.ts";

function start(port: MessagePort): void {
  port.once("message", (message: ToWriter) => {
    if (message.kind === "open") open(port, message);
    else port.close(); // told to close before it had anything to do
  });
}

function open(port: MessagePort, setup: WriterSetup): void {
  try {
    const loop = new WriterLoop(port, openForWriting(setup.file));
    port.on("message", (message: ToWriter) => loop.receive(message));
    send(port, { kind: "ready" });
  } catch (error) {
    send(port, { kind: "unusable", error: toCommandError(error) });
  }
}

class WriterLoop {
  readonly #port: MessagePort;
  readonly #db: Database.Database;
  readonly #core: SqliteCore;
  readonly #walSize: Database.Statement<[], { log: number; checkpointed: number }>;

  constructor(port: MessagePort, db: Database.Database) {
    this.#port = port;
    this.#db = db;
    this.#core = new SqliteCore(db);
    db.pragma("wal_autocheckpoint = 0"); // it would delay the commit that happens to cross the line
    this.#walSize = db.prepare("PRAGMA wal_checkpoint(NOOP)");
  }

  receive(message: ToWriter): void {
    switch (message.kind) {
      case "batch": {
        const { outcomes, events } = this.#core.batch(message.commands);
        return send(this.#port, { kind: "answered", outcomes, events, wal: this.#wal() });
      }
      case "checkpoint":
        return this.#checkpoint(message.mode);
      case "backup":
        void this.#backup(message.id, message.file);
        return;
      case "close":
        this.#checkpoint("truncate"); // the readers' connection is still open, so closing alone would not
        this.#db.close();
        return this.#port.close();
      case "open":
        throw new Error("the database is open already");
      default:
        throw new Unreachable(message);
    }
  }

  /** A failed checkpoint loses nothing: the log keeps growing until one succeeds. */
  #checkpoint(mode: "passive" | "truncate"): void {
    try {
      this.#db.pragma(`wal_checkpoint(${mode})`);
    } catch (error) {
      send(this.#port, { kind: "trouble", error: toCommandError(error) });
    }
  }

  async #backup(id: number, file: string): Promise<void> {
    let error: CommandError | null = null;
    try {
      await backupTo(this.#db, file);
    } catch (thrown) {
      error = toCommandError(thrown);
    }
    send(this.#port, { kind: "backup_done", id, error });
  }

  #wal(): WalSize {
    const size = this.#walSize.get();
    const pages = Math.max(0, size?.log ?? 0);
    return { pages, outstanding: pages - Math.max(0, size?.checkpointed ?? 0) };
  }
}

function send(port: MessagePort, message: FromWriter): void {
  port.postMessage(message);
}

if (parentPort !== null) start(parentPort); // last: classes are not hoisted
