/** The comparison gateways and the load client against each other, in this process, over loopback. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../bench/child.ts";
import { startFloor } from "../../bench/floor/gateway.ts";
import { openMessages } from "../../bench/floor/messages.ts";
import { runLoad, type Load } from "../../bench/load.ts";
import { paceOf, startMockModel, type MockModel } from "../../bench/mock-model.ts";
import { startNaive } from "../../bench/naive/gateway.ts";

const TURNS = 24;
const CHUNKS = 5;

interface Fixture {
  readonly load: Load;
  readonly model: MockModel;
  readonly file: string;
}

const gateways = {
  floor: startFloor,
  naive: (place: { port: number; file: string; upstream: number }) =>
    startNaive({ ...place, logFile: "/dev/null" }),
};

async function start(kind: keyof typeof gateways): Promise<Fixture> {
  const directory = await mkdtemp(join(tmpdir(), "bench-test-"));
  const file = join(directory, "messages.db");
  const model = await startMockModel();
  model.setPace(`mock-${CHUNKS}x0`);
  const port = await freePort();
  const gateway = await gateways[kind]({ port, file, upstream: model.port });
  onTestFinished(async () => {
    await gateway.close();
    model.close();
    await rm(directory, { recursive: true });
  });
  const load = { port, token: "none", model: "mock", prefix: "s", messages: 1, answerChars: CHUNKS * 10 };
  return { load: { ...load, callers: 3, turns: TURNS, sessions: 4 }, model, file };
}

describe.each(["floor", "naive"] as const)("the %s gateway", (kind) => {
  test("keeps every turn and sends the whole history to the model", async () => {
    const { load, model, file } = await start(kind);
    const report = await runLoad(load);
    expect(report).toMatchObject({ failures: 0, firstFailure: "" });
    expect(report.firstTokenMs).toHaveLength(TURNS);
    expect(model.takeStats().requests).toBe(TURNS);

    const history = await runLoad({ ...load, callers: 1, turns: 1, sessions: 1, messages: 3 });
    expect(history.failures).toBe(0);
    expect(model.takeStats().sampledMessages).toBe((TURNS / 4) * 2 + 3);

    const db = openMessages(file);
    const stored = db.prepare("select count(*) from messages where session='s-0'").pluck().get();
    db.close();
    expect(stored).toBe((TURNS / 4) * 2 + 4);
  });

  test("an answer of the wrong length is a failure", async () => {
    const { load } = await start(kind);
    const report = await runLoad({ ...load, turns: 1, answerChars: 1 });
    expect(report).toMatchObject({ failures: 1, firstFailure: expect.stringContaining("50 characters") });
  });
});

test("a pace is read from the model's name", () => {
  expect(paceOf("mock-50x20")).toEqual({ chunks: 50, gapMs: 20 });
  expect(paceOf("gpt-4o")).toBeUndefined();
});
