import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as loop from "../../src/agent/loop.ts";
import type { ModelAnswer, ModelFailure } from "../../src/agent/provider.ts";
import { noUsage } from "../../src/domain/message.ts";
import { Machine } from "../../src/kernel/machine.ts";
import { verifies } from "../support/verifies.ts";

const answer: ModelAnswer = { text: "hello", calls: [], finishReason: "stop", usage: noUsage };
const failure: ModelFailure = {
  code: "provider_unavailable",
  message: "no",
  retryable: true,
  started: false,
  partial: "",
};

const free = (index: number): loop.Call => ({
  index,
  plan: { kind: "run", alone: false },
  status: "pending",
});
const alone = (index: number): loop.Call => ({
  index,
  plan: { kind: "run", alone: true },
  status: "pending",
});
const asks = (index: number): loop.Call => ({
  index,
  plan: { kind: "ask", reason: "effects" },
  status: "pending",
});
const client = (index: number): loop.Call => ({ index, plan: { kind: "client" }, status: "pending" });
const outcome = (digest: string, denied = false): loop.Outcome => ({ digest, denied });

function start(maxRounds = 10, calls: readonly loop.Call[] = []) {
  const machine = new Machine<loop.LoopState, loop.LoopEvent, loop.LoopEffect>(loop.loopTable, {
    name: "idle",
  });
  const effects = machine.send({ type: "run_started", turn: loop.freshTurn(maxRounds), calls });
  return { machine, effects };
}

const types = (effects: readonly loop.LoopEffect[]): readonly string[] =>
  effects.map((effect) => ("index" in effect ? `${effect.type} ${effect.index}` : effect.type));

describe("a turn", () => {
  test("without tools is one model call and its end", () => {
    const { machine, effects } = start();
    expect(types(effects)).toEqual(["call_model"]);
    expect(types(machine.send({ type: "answered", answer, calls: [] }))).toEqual(["finish"]);
    expect(machine.send({ type: "finished" })).toEqual([]);
    expect(machine.state.name).toBe("idle");
  });

  test("runs calls without effects together and the others in call order", () => {
    const { machine } = start();
    const calls = [alone(0), free(1), alone(2), free(3)];
    const [record] = machine.send({ type: "answered", answer, calls });
    expect(record).toMatchObject({ type: "record_calls", starting: [1, 3, 0], refused: false });
    expect(types(machine.send({ type: "recorded" }))).toEqual(["run_call 1", "run_call 3", "run_call 0"]);
    expect(machine.send({ type: "settled", index: 3, outcome: outcome("a") })).toEqual([]);
    expect(types(machine.send({ type: "settled", index: 0, outcome: outcome("b") }))).toEqual(["run_call 2"]);
    machine.send({ type: "settled", index: 1, outcome: outcome("c") });
    expect(types(machine.send({ type: "settled", index: 2, outcome: outcome("d") }))).toEqual(["call_model"]);
  });

  verifies("W2", "a call that needs a person is not run, the run waits for the decision", () => {
    const { machine } = start();
    machine.send({ type: "answered", answer, calls: [free(0), asks(1), alone(2)] });
    expect(types(machine.send({ type: "recorded" }))).toEqual(["run_call 0", "ask 1"]);
    expect(machine.state.name).toBe("awaiting_approval");
    expect(machine.send({ type: "asked" })).toEqual([]);
    expect(types(machine.send({ type: "settled", index: 0, outcome: outcome("a") }))).toEqual(["suspend"]);
    expect(machine.state.name).toBe("idle");
  });

  test("hands over to the client only after the server's own calls", () => {
    const { machine } = start();
    machine.send({ type: "answered", answer, calls: [client(0), alone(1)] });
    expect(types(machine.send({ type: "recorded" }))).toEqual(["run_call 1"]);
    const [finish] = machine.send({ type: "settled", index: 1, outcome: outcome("a") });
    expect(finish).toEqual({ type: "finish", ending: { kind: "client_calls" } });
  });

  verifies("W8", "at the iteration limit the calls are refused and the model concludes", () => {
    const { machine } = start(1);
    machine.send({ type: "answered", answer, calls: [alone(0)] });
    machine.send({ type: "recorded" });
    machine.send({ type: "settled", index: 0, outcome: outcome("a") });
    const [record] = machine.send({ type: "answered", answer, calls: [alone(0)] });
    expect(record).toMatchObject({ type: "record_calls", starting: [], refused: true });
    const [call] = machine.send({ type: "recorded" });
    expect(call).toEqual({ type: "call_model", step: 2, conclusion: "limit" });
    const [finish] = machine.send({ type: "answered", answer, calls: [alone(0)] });
    expect(finish).toMatchObject({ type: "finish", ending: { kind: "answered" } });
  });

  test.each([
    ["the same call with the same outcome", "repetition", outcome("same")],
    ["denials in a row", "denials", outcome("x", true)],
  ])("three times %s ends the use of tools", (_, conclusion, settled) => {
    const { machine } = start();
    let last: readonly loop.LoopEffect[] = [];
    for (let round = 0; round < 3; round += 1) {
      const digest = conclusion === "denials" ? `${settled.digest}${round}` : settled.digest;
      machine.send({ type: "answered", answer, calls: [alone(0)] });
      machine.send({ type: "recorded" });
      last = machine.send({ type: "settled", index: 0, outcome: { ...settled, digest } });
    }
    expect(last).toEqual([{ type: "call_model", step: 3, conclusion }]);
  });

  test("taken up after a crash tells the model of what was interrupted and runs the rest", () => {
    const interrupted: loop.Call = { index: 0, plan: { kind: "interrupted" }, status: "pending" };
    const { machine, effects } = start(10, [interrupted, alone(1)]);
    expect(types(effects)).toEqual(["settle_interrupted 0"]);
    expect(types(machine.send({ type: "settled", index: 0, outcome: outcome("a") }))).toEqual(["run_call 1"]);
  });

  test("is shortened when it does not fit, and ends when it still does not", () => {
    const { machine } = start();
    expect(types(machine.send({ type: "window_exceeded" }))).toEqual(["compact"]);
    expect(types(machine.send({ type: "compacted" }))).toEqual(["call_model"]);
    expect(machine.state).toMatchObject({ name: "streaming", turn: { compactions: 1 } });
    machine.send({ type: "window_exceeded" });
    expect(types(machine.send({ type: "model_failed", failure }))).toEqual(["finish"]);
  });
});

/** Drives the table like a runner whose work ends in any order, fails, or is cancelled at any moment. */
function anyTurn(pick: (n: number) => number) {
  const { machine, effects } = start(3);
  const work: loop.LoopEvent[] = [];
  const seen = { finishes: 0, suspensions: 0, startedTwice: false };
  const started = new Set<number>();
  const perform = (next: readonly loop.LoopEffect[]): void => {
    for (const effect of next) {
      if (effect.type === "call_model") {
        started.clear();
        const kinds = [free, alone, asks, client];
        const calls = Array.from({ length: pick(4) }, (_, index) => (kinds[pick(4)] ?? free)(index));
        work.push(pick(8) === 0 ? { type: "model_failed", failure } : { type: "answered", answer, calls });
      }
      if (effect.type === "record_calls") work.push({ type: "recorded" });
      if (effect.type === "ask") work.push({ type: "asked" });
      if (effect.type === "run_call") {
        seen.startedTwice ||= started.has(effect.index);
        started.add(effect.index);
        work.push({ type: "settled", index: effect.index, outcome: outcome(`${pick(3)}`, pick(3) === 0) });
      }
      if (effect.type === "suspend") seen.suspensions += 1;
      if (effect.type === "finish") {
        seen.finishes += 1;
        work.push({ type: "finished" });
      }
    }
  };
  perform(effects);
  while (work.length > 0) {
    if (pick(20) === 0) perform(machine.send({ type: "cancelled", reason: "user" }));
    const [event] = work.splice(pick(work.length), 1);
    if (event !== undefined) perform(machine.send(event));
  }
  return { ...seen, state: machine.state.name };
}

test("whatever happens, a turn ends or waits exactly once and starts no call twice", () => {
  fc.assert(
    fc.property(fc.infiniteStream(fc.nat()), (stream) => {
      const end = anyTurn((n) => (stream.next().value ?? 0) % n);
      expect(end).toMatchObject({ startedTwice: false, state: "idle" });
      expect(end.finishes + end.suspensions).toBe(1);
    }),
    { numRuns: 500 },
  );
});
