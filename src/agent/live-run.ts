import type { Approval } from "../domain/approval.ts";
import type { RunId, SessionId } from "../domain/ids.ts";
import type { Run, RunError } from "../domain/run.ts";

/** The text of one model call. A call that is issued again after a crash opens a new segment of the same step. */
export interface Segment {
  readonly step: number;
  /** Scrubbed; grows while `done` is false. */
  readonly text: string;
  readonly done: boolean;
}

/**
 * How following a run ends: it reached its terminal state, it waits for a person's decision, or this process
 * cannot go on with it now (the store fails, the daemon stops) and it will be taken up again from the store.
 */
export type Ending =
  | { readonly kind: "ended"; readonly run: Run }
  | { readonly kind: "waiting"; readonly run: Run; readonly approval: Approval }
  | { readonly kind: "interrupted"; readonly run: Run; readonly error: RunError };

/**
 * What a run is saying right now. Any number of readers follow one run, each at its own pace: a reader keeps
 * its own position (segment, offset) and takes whatever has been added since, so a slow one costs no buffer
 * and the run never waits for it.
 */
export interface LiveRun {
  readonly runId: RunId;
  readonly sessionId: SessionId;
  readonly segments: readonly Segment[];
  /** Null while the run is queued or works. Set once, after the store has committed it. */
  readonly ending: Ending | null;
  /** Calls `wake` (synchronously, cheaply) after every change until the returned function is called. */
  follow(wake: () => void): () => void;
}

/** The changeable side of a live run; only the run's own scope holds it. */
export class LiveRunWriter implements LiveRun {
  readonly runId: RunId;
  readonly sessionId: SessionId;
  /** As it was when it came into this process. */
  readonly run: Run;
  readonly segments: { step: number; text: string; done: boolean }[] = [];
  ending: Ending | null = null;
  readonly #readers = new Set<() => void>();

  constructor(run: Run) {
    this.run = run;
    this.runId = run.id;
    this.sessionId = run.sessionId;
  }

  follow(wake: () => void): () => void {
    this.#readers.add(wake);
    return () => this.#readers.delete(wake);
  }

  /** Opens the segment of a model call. */
  begin(step: number): void {
    const last = this.segments.at(-1);
    if (last !== undefined) last.done = true;
    this.segments.push({ step, text: "", done: false });
    this.#wake();
  }

  append(text: string): void {
    const last = this.segments.at(-1);
    if (last === undefined || last.done || this.ending !== null) return; // late news of an abandoned call
    last.text += text;
    this.#wake();
  }

  /** The process cannot go on with the run now; it is still open in the store. */
  interrupt(error: RunError): void {
    this.end({ kind: "interrupted", run: this.run, error });
  }

  end(ending: Ending): void {
    if (this.ending !== null) return;
    const last = this.segments.at(-1);
    if (last !== undefined) last.done = true;
    this.ending = ending;
    this.#wake();
    this.#readers.clear();
  }

  #wake(): void {
    for (const wake of this.#readers) wake();
  }
}
