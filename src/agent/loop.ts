/**
 * The agentic loop as data: a total, pure transition table (state × event → next state + effects). It performs
 * nothing; `loop-runner.ts` performs the effects and sends their results back as events.
 *
 *   idle → streaming → executing_tools → streaming … → finalizing → idle
 *             ↕               ↕
 *        compacting    awaiting_approval → idle (the run waits in the store until somebody decides)
 *
 * What must stay true: each tool call of an answer is settled exactly once before the next model call; calls
 * without effects run together, the others one at a time in call order; a turn ends at its final answer.
 */
import type { ModelAnswer, ModelFailure } from "./provider.ts";
import type { Transitions } from "../kernel/machine.ts";

/** Why the model is asked to conclude without tools. */
export type Conclusion = "limit" | "repetition" | "denials";

export interface Turn {
  /** Number of the current model call, from 0; late news of another step is dropped before it gets here. */
  readonly step: number;
  /** Rounds of tool calls so far, and how many are allowed. */
  readonly rounds: number;
  readonly maxRounds: number;
  /** How often the same call has had the same outcome, and how many denials came in a row. */
  readonly repetition: { readonly digest: string; readonly count: number };
  readonly denials: number;
  readonly compactions: number;
}

/** What is to become of one call; decided by the policy before the table sees it. */
export type CallPlan =
  /** Runs beside others (it has no effect) or in its turn. */
  | { readonly kind: "run"; readonly alone: boolean }
  | { readonly kind: "ask"; readonly reason: string }
  /** Had been started when the process died: it is not run again, the model is told. */
  | { readonly kind: "interrupted" }
  /** The client answers it, not we. */
  | { readonly kind: "client" }
  /** Has its result already: refused, invalid, or settled before a restart. */
  | { readonly kind: "settled"; readonly outcome: Outcome };

/** What the bookkeeping against endless turns needs to know of a settled call. */
export interface Outcome {
  /** Identifies call and result together. */
  readonly digest: string;
  readonly denied: boolean;
}

export interface Call {
  readonly index: number;
  readonly plan: CallPlan;
  readonly status: "pending" | "busy" | "settled";
}

export type Ending =
  | { readonly kind: "answered"; readonly answer: ModelAnswer }
  | { readonly kind: "client_calls" }
  | { readonly kind: "failed"; readonly failure: ModelFailure }
  | { readonly kind: "cancelled"; readonly reason: CancelReason };

export type CancelReason = "user" | "superseded" | "disconnected" | "turn_timeout";

export type LoopState =
  | { readonly name: "idle" }
  | { readonly name: "compacting"; readonly turn: Turn; readonly conclusion: Conclusion | null }
  | { readonly name: "streaming"; readonly turn: Turn; readonly conclusion: Conclusion | null }
  | { readonly name: "executing_tools"; readonly turn: Turn; readonly calls: readonly Call[] }
  | {
      readonly name: "awaiting_approval";
      readonly turn: Turn;
      readonly calls: readonly Call[];
      /** Whether the question is on disk; only then may the run be left. */
      readonly asked: boolean;
    }
  | { readonly name: "finalizing"; readonly turn: Turn };

export type LoopEvent =
  /** A fresh run, or one taken up again with the calls of its open step. */
  | { readonly type: "run_started"; readonly turn: Turn; readonly calls: readonly Call[] }
  /** The conversation does not fit the model's window. */
  | { readonly type: "window_exceeded" }
  | { readonly type: "compacted" }
  | { readonly type: "answered"; readonly answer: ModelAnswer; readonly calls: readonly Call[] }
  | { readonly type: "model_failed"; readonly failure: ModelFailure }
  /** The answer's calls are on disk. */
  | { readonly type: "recorded" }
  | { readonly type: "asked" }
  | { readonly type: "settled"; readonly index: number; readonly outcome: Outcome }
  | { readonly type: "cancelled"; readonly reason: CancelReason }
  | { readonly type: "finished" };

export type LoopEffect =
  | { readonly type: "call_model"; readonly step: number; readonly conclusion: Conclusion | null }
  | { readonly type: "compact" }
  /** Commit the answer and its calls; those in `starting` run next and are marked started in the same commit. */
  | {
      readonly type: "record_calls";
      readonly answer: ModelAnswer;
      readonly starting: readonly number[];
      /** The limit is reached: every call gets a synthetic result. */
      readonly refused: boolean;
    }
  | { readonly type: "run_call"; readonly index: number }
  | { readonly type: "settle_interrupted"; readonly index: number }
  | { readonly type: "ask"; readonly index: number; readonly reason: string }
  /** Leave the run waiting in the store; a decision takes it up again. */
  | { readonly type: "suspend" }
  | { readonly type: "abort_work" }
  | { readonly type: "finish"; readonly ending: Ending };

type Next = { readonly state: LoopState; readonly effects: readonly LoopEffect[] };

/** The same call with the same outcome this often, or this many denials in a row, ends the use of tools. */
const maxRepetition = 3;
const maxDenials = 3;
/** A conversation that still does not fit after this many compactions in one turn fails. */
export const maxCompactions = 2;

export const loopTable: Transitions<LoopState, LoopEvent, LoopEffect> = {
  idle: {
    run_started: (_, { turn, calls }) => (calls.length === 0 ? askModel(turn, null) : advance(turn, calls)),
    window_exceeded: "ignore",
    compacted: "ignore",
    answered: "ignore", // late news of work that was aborted: a promise cannot be un-sent
    model_failed: "ignore",
    recorded: "ignore",
    asked: "ignore",
    settled: "ignore",
    cancelled: "ignore",
    finished: "illegal",
  },
  compacting: {
    run_started: "illegal",
    window_exceeded: "illegal",
    compacted: ({ turn, conclusion }) => askModel({ ...turn, compactions: turn.compactions + 1 }, conclusion),
    answered: "ignore",
    model_failed: ({ turn }, { failure }) => finish(turn, { kind: "failed", failure }),
    recorded: "illegal",
    asked: "illegal",
    settled: "ignore",
    cancelled: ({ turn }, { reason }) => cancel(turn, reason),
    finished: "illegal",
  },
  streaming: {
    run_started: "illegal",
    window_exceeded: ({ turn, conclusion }) => ({
      state: { name: "compacting", turn, conclusion },
      effects: [{ type: "compact" }],
    }),
    compacted: "illegal",
    answered: ({ turn, conclusion }, { answer, calls }) =>
      calls.length === 0 || conclusion !== null
        ? finish(turn, { kind: "answered", answer })
        : takeCalls(turn, answer, calls),
    model_failed: ({ turn }, { failure }) => finish(turn, { kind: "failed", failure }),
    recorded: "illegal",
    asked: "illegal",
    settled: "ignore",
    cancelled: ({ turn }, { reason }) => cancel(turn, reason),
    finished: "illegal",
  },
  executing_tools: {
    run_started: "illegal",
    window_exceeded: "illegal",
    compacted: "illegal",
    answered: "ignore",
    model_failed: "ignore",
    recorded: ({ turn, calls }) => advance(turn, calls),
    asked: "illegal",
    settled: ({ turn, calls }, { index, outcome }) => advance(count(turn, outcome), settle(calls, index)),
    cancelled: ({ turn }, { reason }) => cancel(turn, reason),
    finished: "illegal",
  },
  awaiting_approval: {
    run_started: "illegal",
    window_exceeded: "illegal",
    compacted: "illegal",
    answered: "ignore",
    model_failed: "ignore",
    recorded: "illegal",
    asked: ({ turn, calls }) => rest(turn, calls, true),
    settled: ({ turn, calls, asked }, { index, outcome }) =>
      rest(count(turn, outcome), settle(calls, index), asked),
    cancelled: ({ turn }, { reason }) => cancel(turn, reason),
    finished: "illegal",
  },
  finalizing: {
    run_started: "illegal",
    window_exceeded: "ignore",
    compacted: "ignore",
    answered: "ignore",
    model_failed: "ignore",
    recorded: "ignore",
    asked: "ignore",
    settled: "ignore",
    cancelled: "ignore", // the end is on its way to the disk; exactly one outcome
    finished: () => ({ state: { name: "idle" }, effects: [] }),
  },
};

/** A turn that has just begun. */
export const freshTurn = (maxRounds: number): Turn => ({
  step: 0,
  rounds: 0,
  maxRounds,
  repetition: { digest: "", count: 0 },
  denials: 0,
  compactions: 0,
});

// === Transitions, in the order in which a turn meets them

function askModel(turn: Turn, conclusion: Conclusion | null): Next {
  return {
    state: { name: "streaming", turn, conclusion },
    effects: [{ type: "call_model", step: turn.step, conclusion }],
  };
}

function takeCalls(turn: Turn, answer: ModelAnswer, calls: readonly Call[]): Next {
  const refused = turn.rounds >= turn.maxRounds;
  const ready = calls.map((call): Call =>
    refused || call.plan.kind === "settled" ? { ...call, status: "settled" } : call,
  );
  const counted = calls.reduce((t, { plan }) => (plan.kind === "settled" ? count(t, plan.outcome) : t), turn);
  return {
    state: { name: "executing_tools", turn: counted, calls: ready },
    effects: [{ type: "record_calls", answer, starting: startable(ready), refused }],
  };
}

/** Starts whatever may start now; when all server calls are settled, hands over to the client or the model. */
function advance(turn: Turn, calls: readonly Call[]): Next {
  if (!calls.some(isOpen)) {
    return calls.some((call) => call.plan.kind === "client" && call.status !== "settled")
      ? finish(turn, { kind: "client_calls" })
      : nextRound(turn);
  }
  const starting = new Set(startable(calls));
  const first = firstInLine(calls);
  const effects: LoopEffect[] = [...starting].map((index) => ({ type: "run_call", index }));
  if (first?.status === "pending") {
    if (first.plan.kind === "interrupted") effects.push({ type: "settle_interrupted", index: first.index });
    if (first.plan.kind === "ask")
      effects.push({ type: "ask", index: first.index, reason: first.plan.reason });
    starting.add(first.index);
  }
  const busy = calls.map((call): Call => (starting.has(call.index) ? { ...call, status: "busy" } : call));
  const asking = first?.status === "pending" && first.plan.kind === "ask";
  return asking
    ? { state: { name: "awaiting_approval", turn, calls: busy, asked: false }, effects }
    : { state: { name: "executing_tools", turn, calls: busy }, effects };
}

/** While a question is open, calls without effects run on; after the last of them the run is left waiting. */
function rest(turn: Turn, calls: readonly Call[], asked: boolean): Next {
  const working = calls.some((call) => call.status === "busy" && call.plan.kind === "run");
  if (asked && !working) return { state: { name: "idle" }, effects: [{ type: "suspend" }] };
  return { state: { name: "awaiting_approval", turn, calls, asked }, effects: [] };
}

function nextRound(turn: Turn): Next {
  const conclusion: Conclusion | null =
    turn.rounds >= turn.maxRounds
      ? "limit"
      : turn.repetition.count >= maxRepetition
        ? "repetition"
        : turn.denials >= maxDenials
          ? "denials"
          : null;
  return askModel({ ...turn, step: turn.step + 1, rounds: turn.rounds + 1 }, conclusion);
}

function cancel(turn: Turn, reason: CancelReason): Next {
  const { state, effects } = finish(turn, { kind: "cancelled", reason });
  return { state, effects: [{ type: "abort_work" }, ...effects] };
}

function finish(turn: Turn, ending: Ending): Next {
  return { state: { name: "finalizing", turn }, effects: [{ type: "finish", ending }] };
}

// === Bookkeeping

const isOpen = (call: Call): boolean => call.status !== "settled" && call.plan.kind !== "client";

/** Calls without effects need not wait for anybody; of the others only the first open one may act. */
function startable(calls: readonly Call[]): readonly number[] {
  const first = firstInLine(calls);
  return calls
    .filter(({ plan, status }) => plan.kind === "run" && !plan.alone && status === "pending")
    .concat(first?.status === "pending" && first.plan.kind === "run" ? [first] : [])
    .map((call) => call.index);
}

const firstInLine = (calls: readonly Call[]): Call | undefined =>
  calls.find((call) => isOpen(call) && !(call.plan.kind === "run" && !call.plan.alone));

const settle = (calls: readonly Call[], index: number): readonly Call[] =>
  calls.map((call) => (call.index === index ? { ...call, status: "settled" } : call));

/** Counts repetitions and denials over a turn, so that a model that goes round in circles is stopped. */
export function count(turn: Turn, { digest, denied }: Outcome): Turn {
  const again = digest === turn.repetition.digest;
  return {
    ...turn,
    repetition: { digest, count: again ? turn.repetition.count + 1 : 1 },
    denials: denied ? turn.denials + 1 : 0,
  };
}
