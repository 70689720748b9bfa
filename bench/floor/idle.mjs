/**
 * The floor of a quiet daemon: an HTTP server and an open SQLite file, everything else imported on first use.
 * Plain JavaScript, because stripping types at start would add to the memory and time that it stands for.
 */
import { createServer } from "node:http";
import Database from "better-sqlite3";

export const onFirstUse = {
  fastify: () => import("fastify"),
  undici: () => import("undici"),
  zod: () => import("zod"),
};

const [port, file] = process.argv.slice(2);
const db = new Database(file);
db.pragma("journal_mode = WAL");
db.pragma("synchronous = FULL");
db.exec("create table if not exists sessions(id text primary key, title text) strict");
createServer((_request, response) => response.end("ok")).listen(Number(port), "127.0.0.1");
