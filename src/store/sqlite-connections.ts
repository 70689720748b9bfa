import type Database from "better-sqlite3";
import { BeamclawError } from "../domain/error-catalogue.ts";
import { InlineWriter } from "./inline-writer.ts";
import { inMemory, openForReading, openForWriting } from "./sqlite/connection.ts";
import { guarded } from "./sqlite/statement.ts";
import { WriterBoot } from "./writer-boot.ts";
import { WriterThread } from "./writer-thread.ts";
import type { Writer, WriterNews } from "./writer.ts";

/** A store's two sides: point reads in the caller's thread, writes wherever the writer lives. */
export interface Connections {
  readonly reader: Database.Database;
  readonly writer: Writer;
}

export interface ConnectionOptions {
  readonly file: string;
  readonly writer: "thread" | "inline";
  readonly workerUrl?: URL;
  /** A thread that has begun to start and to open this file, not taken yet; else one is started. */
  readonly boot?: WriterBoot;
}

/** Errors are classified; nothing stays open after one. */
export async function connect(options: ConnectionOptions, news: WriterNews): Promise<Connections> {
  const { file } = options;
  if (options.writer === "inline") {
    const db = guarded(() => openForWriting(file));
    return { reader: db, writer: new InlineWriter(db, news) };
  }
  if (file === inMemory) {
    throw new BeamclawError("internal", "a database in memory cannot be shared with the writer thread");
  }
  const workerUrl = options.workerUrl ?? new URL("./writer-worker.ts", import.meta.url);
  const writer = await WriterThread.take(options.boot ?? new WriterBoot(workerUrl).open({ file }), news);
  try {
    return { reader: guarded(() => openForReading(file)), writer };
  } catch (error) {
    await writer.close();
    throw error;
  }
}
