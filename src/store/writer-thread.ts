import type { Worker } from "node:worker_threads";
import { BeamclawError } from "../domain/error-catalogue.ts";
import type { Event } from "../domain/event.ts";
import { toError, Unreachable } from "../kernel/errors.ts";
import type { CommandInput, CommandName, CommandResult } from "./sqlite/commands.ts";
import {
  type Command,
  type CommandError,
  type CommandOutcome,
  errorFrom,
  resultOf,
} from "./sqlite/sqlite-core.ts";
import type { FromWriter, ToWriter, WalSize, WriterSetup } from "./writer-protocol.ts";
import { WriterBoot } from "./writer-boot.ts";
import type { Writer, WriterNews } from "./writer.ts";

/** Commands that may wait for their turn; beyond it callers are refused. */
const maxQueued = 10_000;
/** Commands in one transaction: bounds how long its first one waits for its last. */
const maxBatch = 500;
/** Pages (4 KiB) in the log: from `idlePages` it is checkpointed when nobody waits, from `fullPages` at once. */
const idlePages = 2_048;
const fullPages = 16_384;

interface Waiting {
  readonly command: Command;
  readonly settle: (outcome: CommandOutcome) => void;
}

/**
 * The queue in front of the writer thread. At most one batch is on its way; whatever arrives meanwhile becomes
 * the next one. So a lone caller waits for one commit and nothing else, and a thousand callers share commits;
 * there is no timer and no window.
 */
export class WriterThread implements Writer {
  readonly #worker: Worker;
  readonly #news: WriterNews;
  #queue: Waiting[] = [];
  #inFlight: readonly Waiting[] = [];
  #flushing = false;
  #checkpointAt = idlePages;
  readonly #backups = new Map<number, (error: CommandError | null) => void>();
  #lastBackup = 0;
  /** Set once no new work is taken: the reason that callers are given. */
  #refusal: string | null = null;
  readonly #ended: Promise<void>;
  #onIdle: (() => void) | null = null;

  /** Starts the thread; resolves when it has opened the database, rejects if it cannot. */
  static async start(setup: WriterSetup, workerUrl: URL, news: WriterNews): Promise<WriterThread> {
    return WriterThread.take(new WriterBoot(workerUrl).open(setup), news);
  }

  /** As `start`, with a thread that somebody has begun to start. */
  static async take(boot: WriterBoot, news: WriterNews): Promise<WriterThread> {
    await boot.ready;
    return new WriterThread(boot.take(), news);
  }

  private constructor(worker: Worker, news: WriterNews) {
    this.#worker = worker;
    this.#news = news;
    worker.on("message", (message: FromWriter) => this.#receive(message));
    worker.on("error", (error) => this.#die(toError(error)));
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ended = promise;
    worker.on("exit", () => {
      this.#die(null);
      resolve();
    });
  }

  execute<N extends CommandName>(name: N, input: CommandInput<N>): Promise<CommandResult<N>> {
    if (this.#refusal !== null) return Promise.reject(unavailable(this.#refusal));
    if (this.#queue.length >= maxQueued) {
      const text = "too many writes are waiting for the disk";
      return Promise.reject(new BeamclawError("overloaded", text, { retryAfterSeconds: 1 }));
    }
    const { promise, resolve: settle } = Promise.withResolvers<CommandOutcome>();
    this.#queue.push({ command: { name, input }, settle });
    this.#flushSoon();
    return promise.then((outcome) => resultOf<N>(outcome));
  }

  async backup(file: string): Promise<void> {
    if (this.#refusal !== null) throw unavailable(this.#refusal);
    this.#lastBackup += 1;
    const id = this.#lastBackup;
    const { promise, resolve } = Promise.withResolvers<CommandError | null>();
    this.#backups.set(id, resolve);
    this.#send({ kind: "backup", id, file });
    const error = await promise;
    if (error !== null) throw errorFrom(error);
  }

  async close(): Promise<void> {
    if (this.#refusal !== null) return this.#ended;
    this.#refusal = "the store is closed";
    if (!this.#idle) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#onIdle = resolve;
      await promise;
    }
    this.#send({ kind: "close" });
    await this.#ended;
  }

  get #idle(): boolean {
    return this.#inFlight.length === 0 && this.#queue.length === 0 && this.#backups.size === 0;
  }

  /** Commands that are issued in one go, such as all those of one incoming burst, share a batch. */
  #flushSoon(): void {
    if (this.#flushing || this.#inFlight.length > 0) return;
    this.#flushing = true;
    queueMicrotask(() => {
      this.#flushing = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#inFlight.length > 0 || this.#queue.length === 0) return;
    this.#inFlight = this.#queue.length <= maxBatch ? this.#queue : this.#queue.slice(0, maxBatch);
    this.#queue = this.#queue.slice(this.#inFlight.length);
    try {
      this.#send({ kind: "batch", commands: this.#inFlight.map(({ command }) => command) });
    } catch (error) {
      // An input that cannot be passed between threads is a defect of its caller; who came along is told as well.
      this.#answer(failedWith("internal", `store: ${toError(error).message}`));
    }
  }

  #receive(message: FromWriter): void {
    switch (message.kind) {
      case "answered":
        this.#checkpoint(message.wal);
        return this.#answer((index) => message.outcomes[index], message.events);
      case "backup_done":
        this.#backups.get(message.id)?.(message.error);
        this.#backups.delete(message.id);
        return this.#tellIdle();
      case "trouble":
        return this.#news.onError(errorFrom(message.error));
      case "ready":
      case "unusable":
        return; // told before this object existed
      default:
        throw new Unreachable(message);
    }
  }

  #answer(outcomeOf: (index: number) => CommandOutcome | undefined, events: readonly Event[] = []): void {
    const answered = this.#inFlight;
    this.#inFlight = [];
    this.#flush(); // the thread goes on while we tell the news
    if (events.length > 0) this.#news.onEvents(events);
    const missing = failedWith("internal", "store: no answer")(0);
    for (const [index, { settle }] of answered.entries()) settle(outcomeOf(index) ?? missing);
    this.#tellIdle();
  }

  /**
   * In an idle gap the log goes back to the database file when it is worth the three syncs; under load only when
   * it is full. A checkpoint that did not help is tried again after another `idlePages`.
   */
  #checkpoint({ pages, outstanding }: WalSize): void {
    if (outstanding < idlePages) this.#checkpointAt = idlePages;
    if (pages >= fullPages) return this.#send({ kind: "checkpoint", mode: "truncate" });
    if (outstanding < this.#checkpointAt || this.#queue.length > 0) return;
    this.#checkpointAt = outstanding + idlePages;
    this.#send({ kind: "checkpoint", mode: "passive" });
  }

  #tellIdle(): void {
    if (!this.#idle) return;
    this.#onIdle?.();
    this.#onIdle = null;
  }

  /** The thread is gone. What was in flight may or may not be on the disk; its callers cannot be told which. */
  #die(error: Error | null): void {
    const closed = this.#refusal !== null && this.#idle;
    this.#refusal ??= "the store's writer has ended";
    const lost = [...this.#inFlight, ...this.#queue];
    this.#inFlight = [];
    this.#queue = [];
    const outcome = failedWith("store_unavailable", "the store's writer has ended")(0);
    for (const { settle } of lost) settle(outcome);
    for (const done of this.#backups.values()) done({ code: "store_unavailable", message: this.#refusal });
    this.#backups.clear();
    this.#tellIdle();
    if (error !== null || !closed) this.#news.onError(error ?? unavailable("the store's writer has ended"));
  }

  #send(message: ToWriter): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    this.#worker.postMessage(message);
  }
}

function failedWith(code: CommandError["code"], message: string): (index: number) => CommandOutcome {
  return () => ({ kind: "failed", error: { code, message } });
}

function unavailable(text: string): BeamclawError {
  return new BeamclawError("store_unavailable", text);
}
