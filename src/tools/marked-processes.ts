/**
 * Finds processes by a mark in their environment. A program that leaves its process group (`setsid`, a double
 * fork) inherits the mark all the same, and so does whatever outlived a daemon that was killed.
 */
import { readdir, readFile } from "node:fs/promises";

export const MARK_VARIABLE = "BEAMCLAW_CALL";

/** New children may appear while the old ones are being killed. */
const MAX_PASSES = 5;
const BATCH = 32;

/**
 * Kills (SIGKILL) every process whose mark starts with `mark`, and returns how many there were. Needs Linux'
 * `/proc`; elsewhere it finds nothing. A process that dropped its environment is not found either.
 */
export async function killMarked(mark: string): Promise<number> {
  let killed = 0;
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    const pids = await findMarked(mark);
    for (const pid of pids) if (kill(pid)) killed++;
    if (pids.length === 0) break;
  }
  return killed;
}

async function findMarked(mark: string): Promise<readonly number[]> {
  const needle = Buffer.from(`${MARK_VARIABLE}=${mark}`);
  const pids = (await numericEntries("/proc")).filter((pid) => pid !== process.pid);
  const found: number[] = [];
  for (let at = 0; at < pids.length; at += BATCH) {
    const batch = pids.slice(at, at + BATCH);
    const marked = await Promise.all(batch.map((pid) => holds(`/proc/${pid}/environ`, needle)));
    found.push(...batch.filter((_, index) => marked[index]));
  }
  return found;
}

async function numericEntries(folder: string): Promise<readonly number[]> {
  try {
    return (await readdir(folder)).filter((name) => /^\d+$/.test(name)).map(Number);
  } catch {
    return []; // no /proc on this system
  }
}

async function holds(file: string, needle: Buffer): Promise<boolean> {
  try {
    const bytes = await readFile(file);
    const at = bytes.indexOf(needle);
    return at === 0 || (at > 0 && bytes[at - 1] === 0);
  } catch {
    return false; // ended meanwhile, or another user's
  }
}

function kill(pid: number): boolean {
  try {
    process.kill(pid, "SIGKILL");
    return true;
  } catch {
    return false; // ended meanwhile
  }
}
