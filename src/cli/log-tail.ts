import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** What is looked at from the end of a file, bytes. */
const TAIL_BYTES = 1_048_576;

/** The last lines of a file, oldest first; none where it cannot be read. */
export function readTail(path: string, lines: number): readonly string[] {
  if (lines === 0) return [];
  const text = readEnd(path);
  return text
    .split("\n")
    .filter((line) => line !== "")
    .slice(-lines);
}

function readEnd(path: string): string {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch {
    return ""; // nothing has been written yet
  }
  try {
    const { size } = fstatSync(file);
    const start = Math.max(0, size - TAIL_BYTES);
    const buffer = Buffer.alloc(Math.min(size, TAIL_BYTES));
    const read = readSync(file, buffer, 0, buffer.length, start);
    const text = buffer.toString("utf8", 0, read);
    // Where the file was cut into, the first line is only a part of one.
    return start === 0 ? text : text.slice(text.indexOf("\n") + 1);
  } finally {
    closeSync(file);
  }
}
