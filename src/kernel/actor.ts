/**
 * An actor owns its state: others send it messages, and it treats them one at a time. Its address outlives its
 * lives; the mailbox does not. A message that must survive a crash belongs in the store before it is sent.
 */
import type { Child } from "./child.ts";
import { toError } from "./errors.ts";
import { Mailbox } from "./mailbox.ts";
import { onAbort } from "./scope.ts";

/**
 * Treats one message. The next one waits until the promise settles; a rejection crashes the actor. `signal` is
 * the actor's own and aborts when it shall stop.
 */
export type Handler<M> = (message: M, signal: AbortSignal) => void | Promise<void>;

/** Answers an `ask`, once; may be kept and called after the handler has returned. */
export type Reply<R> = (answer: R) => void;

/** The actor cannot answer: its mailbox is full, it is not running, or it went down before it had answered. */
export class ActorUnavailable extends Error {
  override readonly name = "ActorUnavailable";
  readonly reason: "full" | "down";

  constructor(actor: string, reason: "full" | "down") {
    super(reason === "full" ? `the mailbox of ${actor} is full` : `${actor} is down`);
    this.reason = reason;
  }
}

export interface ActorSpec<M> {
  readonly name: string;
  /** Messages that may wait; further ones are refused. */
  readonly capacity: number;
  /** Builds the state of one life and returns its handler; called again after a restart. */
  readonly start: (signal: AbortSignal) => Handler<M> | Promise<Handler<M>>;
}

/** What one life of an actor consists of, seen from outside. */
interface Service<M> {
  readonly mailbox: Mailbox<M>;
  /** One per caller that waits for an answer. */
  readonly asking: Set<(error: Error) => void>;
}

export class Actor<M> {
  readonly #spec: ActorSpec<M>;
  #service: Service<M> | undefined;

  constructor(spec: ActorSpec<M>) {
    this.#spec = spec;
  }

  /**
   * One life of the actor. When its signal aborts, the messages that wait are dropped and whoever waits for an
   * answer is told; the message at hand is finished.
   */
  readonly run: Child = async ({ signal, ready }) => {
    const handle = await this.#spec.start(signal);
    signal.throwIfAborted();
    const service = {
      mailbox: new Mailbox<M>(this.#spec.capacity),
      asking: new Set<(error: Error) => void>(),
    };
    this.#service = service;
    using _ = onAbort(signal, () => this.#goDown(service));
    ready();
    try {
      for await (const message of service.mailbox) await handle(message, signal);
    } finally {
      this.#goDown(service);
    }
  };

  /** False: the actor is down or its mailbox full, and the message was not taken. */
  tell(message: M): boolean {
    return this.#service?.mailbox.push(message) ?? false;
  }

  /**
   * Sends the message that `make` builds around the reply, and waits for the answer. Rejects with
   * `ActorUnavailable`, or with the signal's reason; the message may have been treated all the same.
   */
  ask<R>(make: (reply: Reply<R>) => M, signal: AbortSignal): Promise<R> {
    const service = this.#service;
    if (service === undefined) return Promise.reject(new ActorUnavailable(this.#spec.name, "down"));
    if (signal.aborted) return Promise.reject(toError(signal.reason));
    const { promise, resolve, reject } = Promise.withResolvers<R>();
    const forget = (): void => {
      service.asking.delete(fail);
      link[Symbol.dispose]();
    };
    const fail = (error: Error): void => {
      forget();
      reject(error);
    };
    const link = onAbort(signal, () => fail(toError(signal.reason)));
    service.asking.add(fail);
    const message = make((answer) => {
      forget();
      resolve(answer);
    });
    if (!service.mailbox.push(message)) fail(new ActorUnavailable(this.#spec.name, "full"));
    return promise;
  }

  /** Concerns one life only: an abandoned one that ends late must not take the next one down. */
  #goDown(service: Service<M>): void {
    if (this.#service === service) this.#service = undefined;
    service.mailbox.drain();
    service.mailbox.close();
    for (const fail of service.asking) fail(new ActorUnavailable(this.#spec.name, "down"));
  }
}
