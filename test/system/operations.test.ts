import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, test, vi } from "vitest";
import { chunksOf, contentOf, type SseClient } from "../gateway/sse-client.ts";
import { DaemonProcess } from "../support/daemon-process.ts";
import { DaemonWorld } from "../support/daemon-world.ts";
import { startModelServer } from "../support/model-server.ts";
import { verifies } from "../support/verifies.ts";

/** How the daemon stops, refuses to start, and takes a new configuration. */

/** Reads on until the first word of an answer. */
async function firstWord(stream: SseClient): Promise<readonly string[]> {
  const seen: string[] = [];
  while (contentOf(chunksOf(seen).chunks) === "") {
    const frame = await stream.next();
    if (frame === null) throw new Error("the stream ended before a word was said");
    seen.push(frame);
  }
  return seen;
}

/** New work is refused: that is how a daemon that drains looks from outside. */
const draining = (world: DaemonWorld): Promise<void> =>
  vi.waitFor(
    async () => {
      expect(await world.say("late", "!say too late")).toMatchObject({ status: 503, error: "shutting_down" });
    },
    { timeout: 10_000 },
  );

describe("stopping", () => {
  test("SIGTERM: new work is refused, a running answer is finished, then exit code 0", async () => {
    await using world = await DaemonWorld.open();
    const stream = await world.open("s", "!say gap=60 one two three four five six seven eight nine ten");
    const seen = await firstWord(stream);
    const exit = once(world.daemon.child, "exit");
    world.daemon.child.kill("SIGTERM");
    await draining(world);
    const { chunks, done } = chunksOf([...seen, ...(await stream.all())]);
    expect(contentOf(chunks)).toBe("one two three four five six seven eight nine ten");
    expect(done).toBe(true);
    expect(await exit).toEqual([0, null]);
    await world.start();
    expect(await world.history("s")).toHaveLength(2);
  });

  test("`beamclaw stop` returns when the daemon is gone, open answers included", async () => {
    await using world = await DaemonWorld.open();
    const stream = await world.open("s", "!say gap=60 one two three four five six seven eight nine ten");
    await firstWord(stream);
    const exit = once(world.daemon.child, "exit");
    const rest = stream.all();
    expect(await world.daemon.cli("stop")).toMatchObject({ code: 0, out: "stopped\n" });
    expect(existsSync(join(world.daemon.home, "run", "daemon.json"))).toBe(false);
    expect(chunksOf(await rest).done).toBe(true);
    expect(await exit).toEqual([0, null]);
  });

  test("a second SIGTERM does not wait: the run is kept and goes on at the next start", async () => {
    await using world = await DaemonWorld.open();
    const stream = await world.open("s", "!stall after=2 times=1\n!say after the restart");
    const run = stream.headers.get("x-run-id") ?? "";
    await firstWord(stream);
    const exit = once(world.daemon.child, "exit");
    world.daemon.child.kill("SIGTERM");
    await draining(world);
    world.daemon.child.kill("SIGTERM");
    expect(await exit).toEqual([0, null]);
    expect(chunksOf(await stream.all().catch(() => [])).done).toBe(false);
    await world.start();
    expect(await world.reached(run, "completed")).toMatchObject({ output: "after the restart" });
  });

  test("an open question does not keep the daemon, and waits for the next one", async () => {
    await using world = await DaemonWorld.open();
    const question = await world.say("s", `${world.outside.append("kept")}\n!say done`);
    expect(await world.daemon.stop()).toBe(0);
    await world.start();
    expect(await world.say("s", "/yes")).toMatchObject({ text: "done" });
    expect(world.outside.lines).toEqual(["kept"]);
    expect(question.approval).not.toBeNull();
  });
});

describe("refusing to start", () => {
  /** Starts a daemon that is expected to end; returns its code and what it said, line by line. */
  async function refused(options: Parameters<typeof DaemonProcess.start>[0]) {
    try {
      await using daemon = await DaemonProcess.start(options);
      throw new Error(`it started: ${daemon.output.join("\n")}`);
    } catch (error) {
      const [, code, output = ""] =
        /^the daemon ended with (\w+):\n([^]*)$/.exec(String(error).slice(7)) ?? [];
      if (code === undefined) throw error;
      const lines = output.split("\n").filter((line) => line !== "" && !line.startsWith("{")); // without its log
      return { code: Number(code), lines };
    }
  }

  const freshHome = (): string => mkdtempSync(join(tmpdir(), "beamclaw-refused-"));

  verifies("W67", "the port is taken", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const home = freshHome();
    const { code, lines } = await refused({ home, env: { BEAMCLAW_PORT: String(port) } });
    expect(code).toBe(1);
    expect(lines).toEqual([expect.stringMatching(new RegExp(`^beamclaw: .*${port}.*BEAMCLAW_PORT`))]);
    server.close();
    rmSync(home, { recursive: true });
  });

  verifies("W62", "a daemon runs in this home", async () => {
    await using first = await DaemonProcess.start();
    const { code, lines } = await refused({ home: first.home });
    expect(code).toBe(1);
    expect(lines).toEqual([expect.stringContaining(`already (process ${first.child.pid})`)]);
    expect((await first.request("/v1/models")).status).toBe(200);
  });

  const databases: Readonly<Record<string, readonly [(file: string) => void, RegExp]>> = {
    "the database is corrupt": [
      (file) => writeFileSync(file, "no database at all ".repeat(1000)),
      /^beamclaw: .*beamclaw\.db is not a database/,
    ],
    "the database is of a newer version": [
      (file) => {
        const db = new Database(file);
        db.pragma("application_id = 0x42434c57"); // "BCLW"
        db.pragma("user_version = 999");
        db.close();
      },
      /^beamclaw: .*beamclaw\.db has schema 999.*newer beamclaw/,
    ],
    "the database is another program's": [
      (file) => {
        const db = new Database(file);
        db.exec("CREATE TABLE recipes (name TEXT)");
        db.close();
      },
      /^beamclaw: .*beamclaw\.db is a database of another program/,
    ],
    "the database is a folder": [(file) => mkdirSync(file), /^beamclaw: .*beamclaw\.db/],
  };
  for (const [name, [spoil, expected]] of Object.entries(databases)) {
    verifies("W67", name, async () => {
      const home = freshHome();
      spoil(join(home, "beamclaw.db"));
      const { code, lines } = await refused({ home });
      expect(code).toBe(1);
      expect(lines).toEqual([expect.stringMatching(expected)]);
      rmSync(home, { recursive: true });
    });
  }

  verifies("W67", "the home cannot be written", async () => {
    const home = freshHome();
    writeFileSync(join(home, "file"), "");
    const { code, lines } = await refused({ home, env: { BEAMCLAW_HOME: join(home, "file", "below") } });
    expect(code).toBeGreaterThan(0);
    expect(lines[0]).toMatch(/^beamclaw: /);
    expect(lines.at(-1)).toContain(join(home, "file")); // what is wrong, without a stack trace
    expect(lines.length).toBeLessThan(3);
    rmSync(home, { recursive: true });
  });

  test.skipIf(process.getuid?.() === 0)("the home is read-only", async () => {
    const home = freshHome();
    chmodSync(home, 0o500);
    const { code, lines } = await refused({ home });
    expect(code).toBeGreaterThan(0);
    expect(lines).toEqual([expect.stringMatching(/^beamclaw: /)]);
    chmodSync(home, 0o700);
    rmSync(home, { recursive: true });
  });

  verifies("W67", "a configuration that is wrong: all of it at once, exit code 78", async () => {
    const home = freshHome();
    const config = "autonomy: maybe\napprovals: { expireSeconds: -1 }\nloop: { turnSeconds: soon }\n";
    const { code, lines } = await refused({ config, home });
    rmSync(home, { recursive: true });
    expect(code).toBe(78);
    const text = lines.join("\n");
    for (const path of ["autonomy", "approvals.expireSeconds", "loop.turnSeconds"])
      expect(text).toContain(path);
  });
});

describe("a new configuration", () => {
  /** Writes a configuration without starting anything. */
  const write = (world: DaemonWorld, config: object): void =>
    writeFileSync(join(world.home, "config.yaml"), JSON.stringify(config));

  verifies(
    "W9",
    "`beamclaw reload` switches provider and autonomy, and names what needs a restart",
    async () => {
      await using world = await DaemonWorld.open();
      const other = await startModelServer();
      const { providers, ...rest } = world.config();
      const second = { kind: "openai", baseUrl: `${other.origin}/v1`, apiKey: null, model: "second-model" };
      write(world, {
        ...rest,
        providers: { ...(providers as object), second },
        provider: "second",
        autonomy: "full",
        gateway: { bodyLimitBytes: 65_536 },
      });
      const { code, out } = await world.daemon.cli("reload");
      expect(code).toBe(0);
      expect(out).toMatch(/applied: .*autonomy.*provider/);
      expect(out).toMatch(/restart.*gateway\.bodyLimitBytes/);
      const answer = await world.say("s", `${world.outside.append("live")}\n!say by the second`);
      expect(answer).toMatchObject({ text: "by the second", approval: null });
      expect(world.outside.lines).toEqual(["live"]);
      expect(world.model.requests).toHaveLength(0);
      expect(other.requests.map(({ body }) => body["model"])).toEqual(["second-model", "second-model"]);
      await other.close();
    },
  );

  test("SIGHUP applies it, too; a run that works keeps what it began with", async () => {
    await using world = await DaemonWorld.open();
    const stream = await world.open("s", "!say gap=30 one two three four five six seven eight nine ten");
    await firstWord(stream);
    write(world, { ...world.config(), autonomy: "read_only" });
    world.daemon.child.kill("SIGHUP");
    await vi.waitFor(
      async () =>
        expect(JSON.parse((await world.daemon.cli("status", "--json")).out).autonomy).toBe("read_only"),
      { timeout: 10_000 },
    );
    expect(chunksOf(await stream.all()).done).toBe(true);
    await world.say("s", `${world.outside.append("never")}\n!say refused`);
    expect(world.outside.lines).toEqual([]);
  });

  test("one that is wrong is refused, and the old one stays in force", async () => {
    await using world = await DaemonWorld.open();
    write(world, { ...world.config(), autonomy: "maybe" });
    const { code, err } = await world.daemon.cli("reload");
    expect(code).toBe(78);
    expect(err).toContain("autonomy");
    expect(await world.say("s", "!say as before")).toMatchObject({ text: "as before" });
  });
});
