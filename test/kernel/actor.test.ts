import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { Actor, ActorUnavailable, type Reply } from "../../src/kernel/actor.ts";
import { ManualClock, sleep } from "../../src/kernel/clock.ts";
import { supervise } from "../../src/kernel/supervisor.ts";
import { launch } from "./puppet.ts";

type Message =
  | { readonly type: "add"; readonly amount: number; readonly takingMs?: number }
  | { readonly type: "total"; readonly reply: Reply<number> }
  | { readonly type: "fail" };

/** A counter that crashes on demand. `busy` counts messages that are being treated at this moment. */
function counter(clock: ManualClock) {
  const seen = { busy: 0, mostBusy: 0 };
  const actor = new Actor<Message>({
    name: "counter",
    capacity: 3,
    start: () => {
      let total = 0;
      return async (message, signal) => {
        if (message.type === "fail") throw new Error("asked to");
        if (message.type === "total") {
          message.reply(total);
          return;
        }
        seen.busy += 1;
        seen.mostBusy = Math.max(seen.mostBusy, seen.busy);
        await sleep(clock, message.takingMs ?? 0, signal);
        seen.busy -= 1;
        total += message.amount;
      };
    },
  });
  return { actor, seen };
}

const never = new AbortController().signal;
const total = (reply: Reply<number>): Message => ({ type: "total", reply });

describe("one life", () => {
  test("messages are treated one at a time, in order, and an ask sees those before it", async () => {
    const clock = new ManualClock();
    const { actor, seen } = counter(clock);
    launch(actor.run);
    await clock.advance(0);
    expect(actor.tell({ type: "add", amount: 1, takingMs: 10 })).toBe(true);
    expect(actor.tell({ type: "add", amount: 2, takingMs: 10 })).toBe(true);
    const answer = actor.ask(total, never);
    await clock.advance(20);
    expect(await answer).toBe(3);
    expect(seen.mostBusy).toBe(1);
    expect(getEventListeners(never, "abort")).toEqual([]);
  });

  test("what does not fit is refused to the sender", async () => {
    const clock = new ManualClock();
    const { actor } = counter(clock);
    launch(actor.run);
    await clock.advance(0);
    actor.tell({ type: "add", amount: 1, takingMs: 10 });
    await clock.advance(0);
    const told = [1, 2, 3, 4].map((amount) => actor.tell({ type: "add", amount }));
    expect(told).toEqual([true, true, true, false]);
    await expect(actor.ask(total, never)).rejects.toMatchObject({
      name: "ActorUnavailable",
      reason: "full",
    });
  });

  test("a caller that loses patience gets its own reason, and the actor goes on", async () => {
    const clock = new ManualClock();
    const { actor } = counter(clock);
    launch(actor.run);
    await clock.advance(0);
    actor.tell({ type: "add", amount: 5, takingMs: 10 });
    const impatient = new AbortController();
    const answer = actor.ask(total, impatient.signal);
    const reason = new Error("too slow");
    impatient.abort(reason);
    await expect(answer).rejects.toBe(reason);
    await expect(actor.ask(total, impatient.signal)).rejects.toBe(reason);
    const patient = actor.ask(total, never);
    await clock.advance(10);
    expect(await patient).toBe(5);
  });

  test("stopping ends the message at hand and tells whoever waits", async () => {
    const clock = new ManualClock();
    const { actor } = counter(clock);
    const life = launch(actor.run);
    await clock.advance(0);
    actor.tell({ type: "add", amount: 1, takingMs: 10 });
    await clock.advance(0);
    const waiting = actor.ask(total, never);
    life.stop();
    await expect(waiting).rejects.toThrow(ActorUnavailable);
    await clock.advance(0);
    expect(life.outcome()).not.toBe("running");
    expect(actor.tell({ type: "add", amount: 1 })).toBe(false);
    await expect(actor.ask(total, never)).rejects.toMatchObject({ reason: "down" });
  });
});

describe("under a supervisor", () => {
  test("a throwing handler crashes the actor: pending asks reject, and the next life starts afresh", async () => {
    const clock = new ManualClock();
    const { actor } = counter(clock);
    const reports: string[] = [];
    launch(
      supervise({
        id: "top",
        children: [{ id: "counter", run: actor.run }],
        clock,
        report: (r) => reports.push(`${r.reason} ${r.error?.message}`),
      }),
    );
    await clock.advance(0);
    actor.tell({ type: "add", amount: 7 });
    await clock.advance(0);
    actor.tell({ type: "fail" });
    const lost = actor.ask(total, never);
    await expect(lost).rejects.toMatchObject({ reason: "down" });
    await clock.advance(0);
    expect(reports).toEqual(["crashed asked to"]);
    expect(await actor.ask(total, never)).toBe(0);
  });

  test("an abandoned life that ends late does not take the next one down", async () => {
    const clock = new ManualClock();
    const hang = Promise.withResolvers<void>();
    let lives = 0;
    const actor = new Actor<Message>({
      name: "stubborn",
      capacity: 3,
      start: () => {
        lives += 1;
        const life = lives;
        return async (message) => {
          if (message.type === "add") await hang.promise;
          if (message.type === "total") message.reply(life);
        };
      },
    });
    const first = launch(actor.run);
    await clock.advance(0);
    actor.tell({ type: "add", amount: 1 });
    first.stop();
    launch(actor.run);
    await clock.advance(0);
    hang.resolve();
    await clock.advance(0);
    expect(first.outcome()).toBe("returned");
    expect(await actor.ask(total, never)).toBe(2);
  });
});
