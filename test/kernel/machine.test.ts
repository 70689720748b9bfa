import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { IllegalTransition, Machine, TooManyPostponed, type Transitions } from "../../src/kernel/machine.ts";

/** A turnstile: while it is locked, people queue. */
type State = { readonly name: "locked" } | { readonly name: "open"; readonly left: number };
type Event =
  | { readonly type: "coin"; readonly people: number }
  | { readonly type: "arrived"; readonly who: number }
  | { readonly type: "rain" }
  | { readonly type: "alarm" };

const turnstile: Transitions<State, Event, string> = {
  locked: {
    coin: (_, { people }) => ({ state: { name: "open", left: people }, effects: [`open for ${people}`] }),
    arrived: "postpone",
    rain: "ignore",
    alarm: "illegal",
  },
  open: {
    coin: ({ left }, { people }) => ({ state: { name: "open", left: left + people }, effects: [] }),
    arrived: ({ left }, { who }) => ({
      state: left > 1 ? { name: "open", left: left - 1 } : { name: "locked" },
      effects: [`enter ${who}`],
    }),
    rain: "ignore",
    alarm: () => ({ state: { name: "locked" }, effects: ["shut"] }),
  },
};

const locked = (): Machine<State, Event, string> => new Machine(turnstile, { name: "locked" });

describe("by example", () => {
  test("postponed events are replayed in order once the state changes, and may wait again", () => {
    const machine = locked();
    for (const who of [1, 2, 3]) expect(machine.send({ type: "arrived", who })).toEqual([]);
    expect(machine.send({ type: "coin", people: 2 })).toEqual(["open for 2", "enter 1", "enter 2"]);
    expect(machine.state).toEqual({ name: "locked" });
    expect(machine.postponed).toEqual([{ type: "arrived", who: 3 }]);
  });

  test("an illegal event throws, names both and moves nothing", () => {
    const machine = locked();
    machine.send({ type: "arrived", who: 1 });
    expect(() => machine.send({ type: "alarm" })).toThrow(new IllegalTransition("locked", "alarm"));
    expect(machine.state).toEqual({ name: "locked" });
    expect(machine.postponed).toHaveLength(1);
  });

  test("an illegal replay takes the whole event back", () => {
    type Light = { readonly name: "off" } | { readonly name: "on" };
    type Press = { readonly type: "press" } | { readonly type: "dim" };
    const table: Transitions<Light, Press, string> = {
      off: { press: () => ({ state: { name: "on" }, effects: ["shine"] }), dim: "postpone" },
      on: { press: "ignore", dim: "illegal" },
    };
    const machine = new Machine(table, { name: "off" });
    machine.send({ type: "dim" });
    expect(() => machine.send({ type: "press" })).toThrow(IllegalTransition);
    expect(machine.state).toEqual({ name: "off" });
    expect(machine.postponed).toEqual([{ type: "dim" }]);
  });

  test("a change of the state's data alone replays nothing", () => {
    type Job = { readonly name: "busy"; readonly done: number } | { readonly name: "idle" };
    type News = { readonly type: "progress" } | { readonly type: "finished" } | { readonly type: "asked" };
    let asked = 0;
    const table: Transitions<Job, News, string> = {
      busy: {
        progress: ({ done }) => ({ state: { name: "busy", done: done + 1 }, effects: [] }),
        finished: () => ({ state: { name: "idle" }, effects: [] }),
        asked: "postpone",
      },
      idle: {
        progress: "illegal",
        finished: "illegal",
        asked: (state) => ({ state, effects: [`answer ${(asked += 1)}`] }),
      },
    };
    const machine = new Machine(table, { name: "busy", done: 0 });
    machine.send({ type: "asked" });
    expect(machine.send({ type: "progress" })).toEqual([]);
    expect(machine.postponed).toHaveLength(1);
    expect(machine.send({ type: "finished" })).toEqual(["answer 1"]);
    expect(machine.state).toEqual({ name: "idle" });
  });

  test("a table with a missing cell does not compile", () => {
    const { alarm: _, ...incomplete } = turnstile.open;
    // @ts-expect-error "alarm" has no cell in the state "open"
    const table: Transitions<State, Event, string> = { locked: turnstile.locked, open: incomplete };
    const machine = new Machine(table, { name: "open", left: 1 });
    expect(() => machine.send({ type: "alarm" })).toThrow(IllegalTransition);
  });

  test("more postponed events than the bound are refused", () => {
    const machine = new Machine(turnstile, { name: "locked" }, 2);
    machine.send({ type: "arrived", who: 1 });
    machine.send({ type: "arrived", who: 2 });
    expect(() => machine.send({ type: "arrived", who: 3 })).toThrow(TooManyPostponed);
    expect(machine.postponed).toHaveLength(2);
  });
});

test("no postponed event is lost, doubled or overtaken", () => {
  const events = fc.oneof(
    fc.record({ type: fc.constant("coin" as const), people: fc.integer({ min: 1, max: 4 }) }),
    fc.constant("person" as const),
    fc.record({ type: fc.constant("rain" as const) }),
  );
  fc.assert(
    fc.property(fc.array(events, { maxLength: 60 }), (script) => {
      const machine = locked();
      const entered: string[] = [];
      let arrived = 0;
      for (const item of script) {
        const event = item === "person" ? { type: "arrived" as const, who: (arrived += 1) } : item;
        entered.push(...machine.send(event).filter((effect) => effect.startsWith("enter")));
      }
      const waiting = machine.postponed.map((event) => (event.type === "arrived" ? event.who : "?"));
      const everybody = [...entered, ...waiting.map((who) => `enter ${who}`)];
      expect(everybody).toEqual(Array.from({ length: arrived }, (_, index) => `enter ${index + 1}`));
    }),
  );
});
