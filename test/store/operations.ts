import * as fc from "fast-check";
import type { Effect } from "../../src/domain/autonomy.ts";
import { asId, type SessionId } from "../../src/domain/ids.ts";

export const sessions = ["s0", "s1"].map((id) => asId<SessionId>(id));

const callShape = fc.record({
  effect: fc.constantFrom<Effect>("none", "internal", "external"),
  client: fc.boolean(),
  ran: fc.boolean(),
});

/** `run` picks one of the runs so far, `stale` an attempt that is not its newest, `index` a call of its last step. */
const pick = { run: fc.constantFrom(0, 0, 1, 2, 3), stale: fc.constantFrom(0, 0, 0, 0, 1), index: fc.nat(2) };

export const operation = fc.oneof(
  fc.record({
    op: fc.constant("accept" as const),
    session: fc.nat(1),
    start: fc.boolean(),
    key: fc.option(fc.constantFrom("k0", "k1"), { freq: 3 }),
  }),
  fc.record({ op: fc.constant("startNext" as const), session: fc.nat(1) }),
  fc.record({ op: fc.constant("resume" as const), ...pick }),
  fc.record({
    op: fc.constant("finish" as const),
    ...pick,
    how: fc.constantFrom("stop", "tool_calls", "failed", "cancelled"),
  }),
  fc.record({ op: fc.constant("record" as const), ...pick, calls: fc.array(callShape, { maxLength: 3 }) }),
  fc.record({ op: fc.constant("startCall" as const), ...pick }),
  fc.record({ op: fc.constant("settle" as const), ...pick }),
  fc.record({ op: fc.constant("ask" as const), ...pick }),
  fc.record({
    op: fc.constant("decide" as const),
    ...pick,
    outcome: fc.constantFrom("approve", "deny", "always", "expired"),
  }),
  fc.record({ op: fc.constant("delete" as const), session: fc.nat(1) }),
);

export type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;
export type OperationOnRun = Extract<Operation, { readonly run: number }>;
