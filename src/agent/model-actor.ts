/** Owns the model's stream of one run: a supervised child that makes one call at a time. */
import { Mailbox } from "../kernel/mailbox.ts";
import type { Child } from "../kernel/supervisor.ts";
import type { ModelDelta, ModelOutcome, ModelRequest, Provider } from "./provider.ts";

interface Job {
  readonly request: ModelRequest;
  readonly onDelta: (delta: ModelDelta) => void;
  readonly signal: AbortSignal;
  readonly settle: (outcome: ModelOutcome) => void;
}

export class ModelActor {
  readonly #provider: Provider;
  #jobs = new Mailbox<Job>(1);

  constructor(provider: Provider) {
    this.#provider = provider;
  }

  /**
   * Makes one call. Never rejects; it stays unanswered only if this actor crashes, and then the loop that asked
   * is restarted with it.
   */
  ask(
    request: ModelRequest,
    onDelta: (delta: ModelDelta) => void,
    signal: AbortSignal,
  ): Promise<ModelOutcome> {
    return new Promise((settle) => {
      const taken = this.#jobs.push({ request, onDelta, signal, settle });
      if (!taken) settle({ kind: "cancelled" });
    });
  }

  readonly run: Child = async ({ signal, ready }) => {
    const jobs = new Mailbox<Job>(1);
    this.#jobs = jobs;
    const close = (): void => jobs.close();
    signal.addEventListener("abort", close, { once: true });
    ready();
    try {
      for await (const job of jobs) {
        job.settle(await this.#provider.complete(job.request, job.onDelta, job.signal));
      }
    } finally {
      signal.removeEventListener("abort", close);
    }
  };
}
