/** The one table of both comparison gateways: ready-made JSON, clustered by session and sequence. */
import Database from "better-sqlite3";

const SCHEMA = `create table if not exists messages(
  session text not null, seq integer not null, json blob not null, primary key(session, seq)
) strict, without rowid`;

export function openMessages(file: string): Database.Database {
  const db = new Database(file);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL"); // the library is built with NORMAL for WAL, which syncs nothing at commit
  db.pragma("cache_size = -32768");
  db.exec(SCHEMA);
  return db;
}
