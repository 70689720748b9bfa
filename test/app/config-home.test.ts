import { lstatSync, mkdtempSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Home } from "../../src/app/home.ts";
import { acquireLock, readOwner } from "../../src/app/lock.ts";
import { verifies } from "../support/verifies.ts";

let base = "";

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "beamclaw-home-"));
});
afterEach(() => {
  rmSync(base, { recursive: true });
});

verifies("W62", "no path depends on the current directory", () => {
  expect(Home.locate({ HOME: "/home/alice" }).root).toBe("/home/alice/.beamclaw");
  expect(Home.locate({ HOME: "/home/alice", BEAMCLAW_HOME: "" }).root).toBe("/home/alice/.beamclaw");
  expect(Home.locate({ HOME: "/home/alice", BEAMCLAW_HOME: "~/claw" }).root).toBe("/home/alice/claw");
  expect(() => Home.locate({ HOME: "/home/alice", BEAMCLAW_HOME: "claw" })).toThrow("absolute");
});

verifies("W62", "folders are private to their owner", () => {
  const home = new Home(join(base, "home"));
  home.prepare();
  for (const folder of [home.root, home.run, home.agents, home.logs, home.attachments]) {
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  }
});

test("a socket path over 107 bytes moves to a private runtime folder", () => {
  const home = new Home(join(base, "x".repeat(100)), base);
  expect(home.socket.startsWith(join(base, "beamclaw-"))).toBe(true);
  expect(new Home(join(base, "y".repeat(100)), base).socket).not.toBe(home.socket);
  home.prepare();
  expect(lstatSync(join(home.socket, "..")).mode & 0o777).toBe(0o700);
  expect(new Home(join(base, "short"), base).socket).toBe(join(base, "short", "run", "beamclaw.sock"));
});

test("a runtime folder that somebody else laid out is refused", () => {
  const home = new Home(join(base, "x".repeat(100)), base);
  symlinkSync(tmpdir(), join(home.socket, ".."));
  expect(() => {
    home.prepare();
  }).toThrow("somebody else");
});

const me = { pid: process.pid, version: "1.2.3", startedAt: 5 };

test("one holder at a time, who is named to the others; released, it can be taken again", () => {
  const home = new Home(join(base, "home"));
  home.prepare();
  const first = acquireLock(home, me);
  expect(first.kind).toBe("acquired");
  expect(acquireLock(home, { ...me, pid: 1 })).toEqual({ kind: "held", owner: me });
  if (first.kind === "acquired") {
    first.lock.release();
    first.lock.release();
  }
  expect(readOwner(home)).toBeNull();
  const second = acquireLock(home, me);
  expect(second.kind).toBe("acquired");
  if (second.kind === "acquired") second.lock.release();
});
