import { watch } from "node:fs";
import type { Home } from "../app/home.ts";
import { readOwner } from "../app/lock.ts";
import type { Clock, Timer } from "../kernel/clock.ts";

/** Longer than any grace that a stop allows to open turns. */
const LONGEST_STOP_MS = 120_000;
/** How often a process that may have died without a word is looked for. */
const LOOK_MS = 250;

interface Former {
  readonly pid: number;
  readonly startedAt: number;
}

/**
 * Resolves once that daemon has let go of its home (true), or has not within two minutes (false). The daemon
 * removes its owner file as the last thing; the watch on its folder notices at once and, unlike a timer, keeps
 * this process alive meanwhile.
 */
export function untilGone(home: Home, former: Former, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    let look: Timer | null = null;
    const finish = (isGone: boolean): void => {
      watcher.close();
      look?.cancel();
      deadline.cancel();
      resolve(isGone);
    };
    const check = (): void => {
      if (hasGone(home, former)) finish(true);
    };
    const lookAgain = (): void => {
      look = clock.setTimer(LOOK_MS, () => {
        lookAgain();
        check();
      });
    };
    const watcher = watch(home.run, check);
    const deadline = clock.setTimer(LONGEST_STOP_MS, () => {
      finish(false);
    });
    lookAgain();
    check();
  });
}

function hasGone(home: Home, former: Former): boolean {
  const owner = readOwner(home);
  return (
    owner === null || owner.pid !== former.pid || owner.startedAt !== former.startedAt || !isAlive(former.pid)
  );
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
