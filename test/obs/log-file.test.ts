import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, asyncProperty, array, constantFrom, integer } from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { BeamclawError } from "../../src/domain/error-catalogue.ts";
import { LogFile } from "../../src/obs/log-file.ts";
import { verifies } from "../support/verifies.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "beamclaw-log-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const line = (n: number): string => `${JSON.stringify({ n, text: "é".repeat(10) })}\n`;

async function write(path: string, count: number, maxBytes = 5_000, files = 3): Promise<void> {
  const file = new LogFile({ path, maxBytes, files });
  for (let n = 0; n < count; n += 1) file.write(line(n));
  await file.close();
}

verifies(
  "W60",
  "the file and its folder are the owner's alone, also where they were there before",
  async () => {
    const path = join(folder, "logs", "daemon.log");
    await write(path, 1);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, "logs")).mode & 0o777).toBe(0o700);
    const open = join(folder, "open.log");
    writeFileSync(open, "", { mode: 0o644 });
    await write(open, 1);
    expect(statSync(open).mode & 0o777).toBe(0o600);
  },
);

verifies("W60", "a folder that everyone may write to and a symbolic link are refused", () => {
  const shared = join(folder, "shared");
  mkdirSync(shared);
  chmodSync(shared, 0o1777);
  expect(() => new LogFile({ path: join(shared, "x.log"), maxBytes: 1, files: 1 })).toThrow(BeamclawError);
  const target = join(folder, "target");
  writeFileSync(target, "precious");
  symlinkSync(target, join(folder, "link.log"));
  expect(() => new LogFile({ path: join(folder, "link.log"), maxBytes: 1, files: 1 })).toThrow(
    /cannot write/,
  );
  expect(readFileSync(target, "utf8")).toBe("precious");
});

test("lines are appended whole and in order, across openings", async () => {
  const path = join(folder, "a.log");
  await write(path, 3);
  await write(path, 2);
  expect(readFileSync(path, "utf8")).toBe([0, 1, 2, 0, 1].map(line).join(""));
});

test("a file without former ones starts afresh when it is full", async () => {
  const path = join(folder, "a.log");
  await write(path, 50, 200, 1);
  expect(readdirSync(folder)).toEqual(["a.log"]);
  expect(statSync(path).size).toBeLessThanOrEqual(200);
  expect(readFileSync(path, "utf8")).toContain(line(49));
});

test("property: files stay within their size and number, and hold the last lines in order", async () => {
  await assert(
    asyncProperty(
      array(integer({ min: 0, max: 60 }), { minLength: 1, maxLength: 4 }),
      constantFrom(64, 100, 333),
      integer({ min: 1, max: 4 }),
      async (counts, maxBytes, files) => {
        const own = mkdtempSync(join(folder, "p-"));
        const path = join(own, "x.log");
        for (const count of counts) await write(path, count, maxBytes, files);
        const names = readdirSync(own).toSorted().toReversed();
        expect(names.length).toBeLessThanOrEqual(files);
        for (const name of names) expect(statSync(join(own, name)).size).toBeLessThanOrEqual(maxBytes);
        const kept = names.map((name) => readFileSync(join(own, name), "utf8")).join("");
        const all = counts.flatMap((count) => Array.from({ length: count }, (_, n) => line(n))).join("");
        expect(all.endsWith(kept)).toBe(true);
        expect(kept === "").toBe(all === "");
      },
    ),
    { numRuns: 25 },
  );
});

test("what the disk refuses is lost and counted, and the next line that fits says how much", async () => {
  const path = join(folder, "sub", "a.log");
  const file = new LogFile({ path, maxBytes: 5_000, files: 2 });
  rmSync(join(folder, "sub"), { recursive: true });
  file.write(line(1));
  file.write(line(2));
  await file.flush();
  mkdirSync(join(folder, "sub"));
  file.write(line(3));
  await file.close();
  expect(readFileSync(path, "utf8")).toBe(`{"level":"warn","event":"log_lines_lost","lines":2}\n${line(3)}`);
  file.write(line(4)); // after the end: ignored
});

test("waiting lines are bounded", async () => {
  const path = join(folder, "a.log");
  const file = new LogFile({ path, maxBytes: 50_000_000, files: 2 });
  const long = `${"x".repeat(99_999)}\n`;
  for (let n = 0; n < 30; n += 1) file.write(long);
  file.write("short\n");
  await file.close();
  expect(statSync(path).size).toBeLessThan(1_200_000);
});
