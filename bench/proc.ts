/** What Linux tells about a process and its descendants under `/proc` (proc(5)). */
import { readdirSync, readFileSync } from "node:fs";

/** `sysconf(_SC_CLK_TCK)`: 100 on every Linux that Node supports. */
const TICKS_PER_SECOND = 100;

/** CPU time of the process tree since its start, all threads, user and system. Seconds, in steps of 10 ms. */
export function cpuSeconds(pid: number): number {
  const ticks = processTree(pid).map((member) => {
    // The command's name in parentheses may hold spaces; the fields after it do not. utime and stime are 14 and 15.
    const fields = readProc(member, "stat")
      .replace(/^.*\) /s, "")
      .split(" ");
    return Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
  });
  return ticks.reduce((sum, n) => sum + n, 0) / TICKS_PER_SECOND;
}

/** Resident memory of the process tree. Bytes. */
export function rssBytes(pid: number): number {
  const kilobytes = processTree(pid).map((member) =>
    Number(/^VmRSS:\s+(\d+) kB$/m.exec(readProc(member, "status"))?.[1] ?? 0),
  );
  return kilobytes.reduce((sum, n) => sum + n, 0) * 1024;
}

/** Times that any thread of the process tree gave up its core by itself: its wake-ups. */
export function wakeUps(pid: number): number {
  return processTree(pid)
    .flatMap((member) => threads(member).map((thread) => readProc(member, `task/${thread}/status`)))
    .map((status) => Number(/^voluntary_ctxt_switches:\s+(\d+)$/m.exec(status)?.[1] ?? 0))
    .reduce((sum, n) => sum + n, 0);
}

function processTree(pid: number): readonly number[] {
  const children = threads(pid)
    .flatMap((thread) => readProc(pid, `task/${thread}/children`).split(" "))
    .filter((text) => text !== "")
    .map(Number);
  return [pid, ...children.flatMap(processTree)];
}

function threads(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return []; // it has ended
  }
}

/** Empty for a process or thread that has ended meanwhile. */
function readProc(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return "";
  }
}
