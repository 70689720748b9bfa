/** The floor's writer thread: one message in is one transaction, one message out says that it is on disk. */
import { parentPort, workerData } from "node:worker_threads";
import { z } from "zod";
import type { Row } from "./group-commit.ts";
import { openMessages } from "./messages.ts";

const { file } = z.object({ file: z.string() }).parse(workerData);
const db = openMessages(file);
const insert = db.prepare("insert into messages values(?, ?, ?)");
const write = db.transaction((rows: readonly Row[]) => {
  for (const [session, seq, json] of rows) insert.run(session, seq, Buffer.from(json));
});

parentPort?.on("message", (rows: readonly Row[]) => {
  write.immediate(rows);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage("written");
});
