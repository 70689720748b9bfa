import type Database from "better-sqlite3";
import { addUsage } from "../../domain/message.ts";
import type { CallKey, Fenced, RecordStep } from "../ports.ts";
import { fenced } from "./open-runs.ts";
import type { Parts } from "./parts.ts";
import { decodeUsage } from "./run-row.ts";
import type { CallResult } from "./step-ledger.ts";

type Settled<K extends string> = { readonly kind: K; readonly settled: boolean };

/** What happens inside a run: model answers with calls, and how their calls come along. */
export class StepCommands {
  readonly #parts: Parts;
  readonly #setUsage: Database.Statement<[string, number]>;

  constructor(db: Database.Database, parts: Parts) {
    this.#parts = parts;
    this.#setUsage = db.prepare("UPDATE runs SET usage = ? WHERE key = ?");
  }

  /** The step's usage is added to the run's, so that a run that is taken over knows what it has used. */
  record(answer: RecordStep): Settled<"recorded"> | Fenced {
    const { runs, lanes, ledger } = this.#parts;
    const run = runs.active(answer.runId, answer.attempt);
    if (run === null) return fenced;
    const settled = ledger.record(run, answer);
    this.#setUsage.run(JSON.stringify(addUsage(decodeUsage(run.row.usage), answer.usage)), run.key);
    lanes.save(run.lane, answer.at);
    return { kind: "recorded", settled };
  }

  startCall(call: CallKey & { readonly at: number }): { readonly kind: "started" } | Fenced {
    const { runs, lanes, ledger } = this.#parts;
    const run = runs.active(call.runId, call.attempt);
    if (run === null || !ledger.start(run, call.step, call.index, call.at)) return fenced;
    lanes.save(run.lane, call.at);
    return { kind: "started" };
  }

  settle(call: CallKey & { readonly result: CallResult; readonly at: number }): Settled<"settled"> | Fenced {
    const { runs, lanes, ledger } = this.#parts;
    const run = runs.active(call.runId, call.attempt);
    if (run === null) return fenced;
    const settled = ledger.settle(run, call.step, call.index, call.result, call.at);
    if (settled === null) return fenced;
    lanes.save(run.lane, call.at);
    return { kind: "settled", settled };
  }
}
