import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import * as fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Home } from "../../src/app/home.ts";
import { readCompletion } from "../../src/cli/send-command.ts";
import { beamclaw, prepareHome, startDouble } from "../support/daemon-double.ts";

let base = "";
let home: Home;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "beamclaw-send-"));
  home = prepareHome(base);
});
afterEach(() => {
  rmSync(base, { recursive: true });
});

interface Seen {
  readonly message: string;
  readonly model: string;
  readonly user: unknown;
  readonly session: unknown;
}

const frame = (content: string): string =>
  `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
const END = "data: [DONE]\n\n";

/** A chat that asks before it does what "rm" stands for, and otherwise says the message back. */
function chat(seen: Seen[], pending: Set<string>, raw: Readonly<Record<string, string>> = {}) {
  return (app: FastifyInstance): void => {
    app.post<{ Body: { model: string; messages: { content: string }[] } }>(
      "/v1/chat/completions",
      ({ body, headers }, reply) => {
        const message = body.messages[0]?.content ?? "";
        seen.push({
          message,
          model: body.model,
          user: headers["x-user-id"],
          session: headers["x-session-id"],
        });
        if (message === "rm") pending.add("approval-1");
        else pending.clear();
        return reply
          .header("x-run-id", "run-1")
          .header("x-session-id", "session-1")
          .type("text/event-stream")
          .send(raw[message] ?? `${frame(message === "rm" ? "May I?" : `you said `)}${frame(message)}${END}`);
      },
    );
    app.get("/v1/approvals", () => ({
      data: [...pending].map((id) => ({ id, run_id: "run-1" })),
      next_cursor: null,
    }));
  };
}

test("a message goes out as the person, and the answer comes back as it is", async () => {
  const seen: Seen[] = [];
  await using _ = await startDouble(home, chat(seen, new Set()));
  expect(await beamclaw(home, ["send", "hello"])).toEqual({ code: 0, out: "you said hello\n", err: "" });
  expect(seen).toEqual([
    { message: "hello", model: "beamclaw", user: userInfo().username, session: undefined },
  ]);
});

test("agent and session are chosen by options, the agent by BEAMCLAW_AGENT as well", async () => {
  const seen: Seen[] = [];
  await using _ = await startDouble(home, chat(seen, new Set()));
  await beamclaw(home, ["send", "--agent", "ada", "--session", "s", "one"]);
  await beamclaw(home, ["send", "two"], { env: { BEAMCLAW_AGENT: "bob" } });
  await beamclaw(home, ["send", "three"], { env: { BEAMCLAW_AGENT: "" } });
  expect(seen).toMatchObject([
    { model: "beamclaw/ada", session: "s", user: undefined },
    { model: "beamclaw/bob" },
    { model: "beamclaw" },
  ]);
});

test("- reads the message from standard input; an empty one is a usage error", async () => {
  const seen: Seen[] = [];
  await using _ = await startDouble(home, chat(seen, new Set()));
  expect(await beamclaw(home, ["send", "-"], { input: "from a pipe" })).toMatchObject({ code: 0 });
  expect(await beamclaw(home, ["send", "-"], { input: " \n" })).toMatchObject({ code: 2 });
  expect(seen.map(({ message }) => message)).toEqual(["from a pipe"]);
});

test("--json prints one object at the end", async () => {
  await using _ = await startDouble(home, chat([], new Set()));
  const { out } = await beamclaw(home, ["send", "--json", "hello"]);
  expect(JSON.parse(out)).toEqual({ text: "you said hello", run_id: "run-1", session_id: "session-1" });
});

test.each([
  ["y", "/yes"],
  ["N", "/no"],
  ["always", "/always"],
])("a person at a terminal decides with %s in the same session", async (typed, sent) => {
  const seen: Seen[] = [];
  await using _ = await startDouble(home, chat(seen, new Set()));
  const { code, out } = await beamclaw(home, ["send", "rm"], { tty: true, input: `${typed}\n` });
  expect({ code, seen: seen.map(({ message }) => message) }).toEqual({ code: 0, seen: ["rm", sent] });
  expect(seen[1]?.session).toBe("session-1");
  expect(out).toContain(`you said ${sent}`);
});

test("a script, or a person who leaves, is told how to decide and gets exit code 1", async () => {
  await using _ = await startDouble(home, chat([], new Set()));
  for (const options of [{}, { tty: true, input: "" }]) {
    const { code, err } = await beamclaw(home, ["send", "rm"], options);
    expect(code).toBe(1);
    expect(err).toContain("beamclaw approvals approve approval-1");
  }
});

test("an error in the stream and a stream without its end are failures", async () => {
  const failed = `${frame("half")}data: {"error":{"message":"too slow","code":"provider_timeout"}}\n\n`;
  await using _ = await startDouble(home, chat([], new Set(), { fail: failed, cut: frame("half") }));
  expect(await beamclaw(home, ["send", "fail"])).toMatchObject({
    code: 1,
    out: "half",
    err: expect.stringContaining("too slow"),
  });
  expect(await beamclaw(home, ["send", "cut"])).toMatchObject({ code: 1, out: "half" });
});

test("what a model writes cannot steer a terminal, and reaches a pipe unchanged", async () => {
  const evil = "\u001b]0;owned\u0007\u001b[2Jtext\tand\nlines";
  await using _ = await startDouble(home, chat([], new Set(), { evil: frame(evil) + END }));
  const shown = await beamclaw(home, ["send", "evil"], { tty: true });
  expect(shown.out).toBe("]0;owned[2Jtext\tand\nlines\n");
  expect((await beamclaw(home, ["send", "evil"])).out).toBe(`${evil}\n`);
});

test("a completion is read the same however the stream is cut", async () => {
  const text = fc.array(fc.string({ unit: "binary" }), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(text, fc.array(fc.nat(40), { maxLength: 30 }), async (deltas, cuts) => {
      const whole = `: ping\n\n${deltas.map(frame).join("")}${END}`;
      const body = pieces(whole, cuts);
      expect(await readCompletion({ headers: {}, body }, () => undefined)).toBe(deltas.join(""));
    }),
    { numRuns: 30 },
  );
});

async function* pieces(whole: string, lengths: readonly number[]): AsyncIterable<string> {
  let start = 0;
  for (const length of lengths) {
    yield whole.slice(start, start + length);
    start += length;
  }
  yield whole.slice(start);
}
