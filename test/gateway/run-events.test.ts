import { describe, expect, test } from "vitest";
import { bearer, chat, openGateway } from "./harness.ts";
import { SseClient } from "./sse-client.ts";

interface Frame {
  readonly id: number | null;
  readonly type: string;
  readonly data: { readonly [key: string]: unknown };
}

/** A gateway with a run that has begun, and a way to follow it. */
async function withRun() {
  const gateway = await openGateway();
  const url = await gateway.listen();
  const next = gateway.conversations.next();
  void gateway.inject(chat("hi", { session_id: "s", stream: true }));
  const run = await next;
  const follow = async (after?: number) =>
    new SseClient(
      await fetch(`${url}/v1/runs/${run.saved.id}/events`, {
        headers: { ...bearer(gateway.owner), ...(after !== undefined && { "last-event-id": String(after) }) },
      }),
    );
  return { gateway, run, follow };
}

function parse(text: string | null): Frame {
  const lines = new Map((text ?? "").split("\n").map((line) => [line.split(": ", 1)[0], line]));
  const field = (name: string) => lines.get(name)?.slice(name.length + 2);
  const { data, type } = JSON.parse(field("data") ?? "{}") as Frame;
  expect(type).toBe(field("event"));
  const id = field("id");
  return { id: id === undefined ? null : Number(id), type, data };
}

const read = async (client: SseClient, count: number): Promise<readonly Frame[]> => {
  const frames = [];
  for (let index = 0; index < count; index += 1) frames.push(parse(await client.next()));
  return frames;
};

const shapes = (frames: readonly Frame[]) =>
  frames.map(({ id, type, data }) =>
    id === null ? [type, data["step"], data["offset"], data["text"]] : [id, type],
  );

/** What a reader knows of a step's text after snapshots and chunks: each splices at its offset. */
function splice(frames: readonly Frame[], step: number): string {
  return frames
    .filter(({ id, data }) => id === null && data["step"] === step)
    .reduce((text, { data }) => text.slice(0, Number(data["offset"])) + String(data["text"]), "");
}

describe("a run's events", () => {
  test("come from the store, then one snapshot, then live, until the run ends", async () => {
    const { run, follow } = await withRun();
    run.begin(0).say("Let me ");
    const client = await follow();
    expect(client.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const first = await read(client, 3);
    run.say("see.");
    const second = await read(client, 1);
    run.event({ type: "tool.started", step: 0, callId: "c", tool: "bash" });
    const third = await read(client, 1);
    run.begin(1).say("42").complete("42");
    const rest = (await client.all()).map(parse);
    expect(shapes([...first, ...second, ...third, ...rest])).toEqual([
      [0, "run.queued"],
      [1, "run.started"],
      ["run.snapshot", 0, 0, "Let me "],
      ["chunk", 0, 7, "see."],
      [2, "tool.started"],
      ["chunk", 1, 0, "42"],
      [3, "run.completed"],
    ]);
    expect(third[0]?.data).toEqual({ step: 0, call_id: "c", tool: "bash" });
  });

  test("carry seq, type, session, run, time and data", async () => {
    const { run, follow } = await withRun();
    run.answer("x");
    const client = await follow();
    expect(await client.next()).toBe(
      [
        "id: 0",
        "event: run.queued",
        `data: {"seq":0,"type":"run.queued","session_id":"s","run_id":"${run.saved.id}",` +
          '"ts":"2026-01-02T03:04:05.678Z","data":{}}',
      ].join("\n"),
    );
    expect((await client.all()).map(parse).map(({ type }) => type)).toEqual(["run.started", "run.completed"]);
  });

  test("resume after the last one seen, with a snapshot of what was said meanwhile", async () => {
    const { run, follow } = await withRun();
    run.begin(0).say("one ");
    const before = await follow();
    const seen = await read(before, 3);
    await before.close();
    run.say("two ").event({ type: "tool.started", step: 0, callId: "c", tool: "bash" }).say("three");
    const client = await follow(seen.findLast(({ id }) => id !== null)?.id ?? -1);
    const resumed = await read(client, 2);
    expect(shapes(resumed)).toEqual([
      [2, "tool.started"],
      ["run.snapshot", 0, 0, "one two three"],
    ]);
    expect(splice([...seen, ...resumed], 0)).toBe("one two three");
  });

  test("of a run that has ended are its stored ones, or none", async () => {
    const { run, follow } = await withRun();
    run.answer("done");
    expect(shapes((await (await follow()).all()).map(parse))).toEqual([
      [0, "run.queued"],
      [1, "run.started"],
      [2, "run.completed"],
    ]);
    expect(await (await follow(2)).all()).toEqual([]);
  });

  test("go on after a question was answered, with the run's new text", async () => {
    const { gateway, run, follow } = await withRun();
    const approval = run.ask();
    const client = await follow();
    await read(client, 4);
    await gateway.inject({
      method: "POST",
      url: `/v1/approvals/${approval.id}`,
      payload: { decision: "approve" },
    });
    const resumed = await read(client, 2);
    run.begin(1).say("after").complete("after");
    expect(shapes([...resumed, ...(await client.all()).map(parse)])).toEqual([
      [4, "approval.resolved"],
      [5, "run.resumed"],
      ["chunk", 1, 0, "after"],
      [6, "run.completed"],
    ]);
  });

  test("are many to a new reader, in order and without a gap", async () => {
    const { run, follow } = await withRun();
    for (let count = 0; count < 500; count += 1) {
      run.event({ type: "tool.started", step: count, callId: "c", tool: "bash" });
    }
    run.answer("x");
    const frames = (await (await follow()).all()).map(parse);
    expect(frames.map(({ id }) => id)).toEqual(Array.from({ length: 503 }, (_, index) => index));
  });

  test("a quiet stream is pinged every fifteen seconds, and ends when its run is deleted", async () => {
    const { gateway, run, follow } = await withRun();
    run.begin(0);
    const client = await follow();
    expect((await read(client, 3)).at(-1)?.type).toBe("run.snapshot");
    await gateway.clock.advance(15_000);
    expect(await client.next()).toBe(": ping");
    gateway.store.savedRuns.delete(run.saved.id);
    await gateway.clock.advance(15_000);
    expect((await client.all()).filter((frame) => frame !== ": ping")).toEqual([]);
  });

  test("a drain ends the stream, whose reader will resume", async () => {
    const { gateway, run, follow } = await withRun();
    run.begin(0).say("half");
    const client = await follow();
    await read(client, 3);
    const drained = gateway.drain();
    expect(await client.all()).toEqual([]);
    const again = await gateway.inject({ url: `/v1/runs/${run.saved.id}/events` });
    expect(again.statusCode).toBe(503);
    run.complete("half");
    await drained;
  });

  test("a reader that leaves leaves nothing behind", async () => {
    const { gateway, run, follow } = await withRun();
    const client = await follow();
    await read(client, 2);
    const timers = gateway.clock.pending;
    expect(gateway.store.listeners.size).toBe(1);
    await client.close();
    await gateway.obs.ended(1);
    expect(gateway.store.listeners.size).toBe(0);
    expect(gateway.clock.pending).toBe(timers - 2); // its ping and its look
    run.complete("x");
  });

  test.each(["x", "1.5"])("Last-Event-ID: %s is refused", async (last) => {
    const { gateway, run } = await withRun();
    const response = await gateway.inject({
      url: `/v1/runs/${run.saved.id}/events`,
      headers: { "last-event-id": last },
    });
    expect(response.json().error.param).toBe("last-event-id");
    run.complete("x");
  });
});
