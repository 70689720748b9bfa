import type Database from "better-sqlite3";
import { BeamclawError } from "../domain/error-catalogue.ts";
import type { CommandInput, CommandName, CommandResult } from "./sqlite/commands.ts";
import { backupTo } from "./sqlite/connection.ts";
import { resultOf, SqliteCore } from "./sqlite/sqlite-core.ts";
import { guarded } from "./sqlite/statement.ts";
import type { Writer, WriterNews } from "./writer.ts";

/** Writes in the caller's own thread, each command a transaction: for tests, simulation and short-lived tools. */
export class InlineWriter implements Writer {
  readonly #db: Database.Database;
  readonly #core: SqliteCore;
  readonly #news: WriterNews;

  constructor(db: Database.Database, news: WriterNews) {
    this.#db = db;
    this.#core = new SqliteCore(db);
    this.#news = news;
  }

  async execute<N extends CommandName>(name: N, input: CommandInput<N>): Promise<CommandResult<N>> {
    this.#assertOpen();
    const { outcomes, events } = this.#core.batch([{ name, input }]);
    if (events.length > 0) this.#news.onEvents(events);
    return resultOf<N>(outcomes[0]);
  }

  async backup(file: string): Promise<void> {
    this.#assertOpen();
    await backupTo(this.#db, file);
  }

  async close(): Promise<void> {
    guarded(() => this.#db.close());
  }

  #assertOpen(): void {
    if (!this.#db.open) throw new BeamclawError("store_unavailable", "the store is closed");
  }
}
