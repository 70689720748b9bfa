import type { FastifyReply } from "fastify";
import type { LiveRun } from "../agent/live-run.ts";
import { isEnded, type Run } from "../domain/run.ts";
import type { Timer } from "../kernel/clock.ts";
import { toError } from "../kernel/errors.ts";
import type { RouteDeps } from "./route.ts";
import { SseStream } from "./sse.ts";
import { eventView } from "./views.ts";

/** Events read from the store at a time. */
const BATCH = 200;
/** Doorbells can be missed (a run that is deleted rings none), so the stream looks by itself, too. */
const LOOK_MS = 15_000;

/**
 * The events of one run without a gap (D7): what is stored after the reader's position, then one snapshot of
 * the text that is being written, then stored events and text as they come. The store's and the run's
 * notices only ring: what is sent is always read from the reader's own position, so nothing is buffered for
 * a slow reader, and nothing is sent twice.
 */
export class RunEventStream {
  readonly #deps: RouteDeps;
  readonly #run: Run;
  readonly #sse: SseStream;
  readonly #cleanups: (() => void)[] = [];
  #after: number;
  #next: Timer | null = null;
  #live: LiveRun | undefined;
  #unfollow: () => void = () => undefined;
  #segment = 0;
  #offset = 0;
  /** One pump runs at a time; a ring during it makes it go round once more. */
  #pumping = false;
  #rung = false;
  /** Whether the store may hold events after the position: text alone costs no read. */
  #news = true;
  #caughtUp = false;
  #over = false;

  constructor(reply: FastifyReply, deps: RouteDeps, run: Run, after: number) {
    this.#deps = deps;
    this.#run = run;
    this.#after = after;
    this.#sse = new SseStream(reply, deps.clock, {
      ready: () => this.#ring(false),
      close: () => this.#stop(),
    });
  }

  /** Subscribes before the first read, so that nothing falls between the two. */
  start(): void {
    const { store, draining } = this.#deps;
    const ring = (): void => this.#ring(true);
    this.#cleanups.push(
      store.events.subscribe((events) => {
        if (events.some((event) => event.runId === this.#run.id)) ring();
      }),
      () => this.#unfollow(),
      () => this.#next?.cancel(),
    );
    draining.addEventListener("abort", ring);
    this.#cleanups.push(() => draining.removeEventListener("abort", ring));
    this.#look();
    this.#ring(true);
  }

  #look(): void {
    this.#next = this.#deps.clock.setTimer(LOOK_MS, () => {
      this.#ring(true);
      this.#look();
    });
  }

  /** Somebody rang: there is text, or (`news`) there may be events. */
  #ring(news: boolean): void {
    this.#news ||= news;
    this.#rung = true;
    if (this.#pumping || this.#over) return;
    this.#pumping = true;
    this.#pump().catch((error: unknown) => {
      this.#deps.obs.defect(toError(error), this.#run.id);
      this.#end(); // the reader comes back with its Last-Event-ID
    });
  }

  async #pump(): Promise<void> {
    try {
      while (this.#rung && !this.#over && this.#sse.ready) {
        this.#rung = false;
        this.#sendText();
        const ended = this.#news && (await this.#sendEvents());
        if (!ended && !this.#caughtUp) this.#snapshot();
        if (ended || this.#deps.draining.aborted) this.#end();
      }
    } finally {
      // In the same tick as the loop's last look, so that no ring falls between the two.
      this.#pumping = false;
    }
  }

  /** Sends the stored events after the position; true once the run's end was among them, or was before. */
  async #sendEvents(): Promise<boolean> {
    const { runs, events } = this.#deps.store;
    for (;;) {
      this.#news = false;
      // Read first: an end that is seen here is in the events that are read after it.
      const run = await runs.get(this.#run.id);
      const found = await events.after(this.#run.sessionId, this.#after, {
        runId: this.#run.id,
        limit: BATCH,
      });
      if (found.length > 0) {
        if (this.#caughtUp) this.#sendText(); // what was said before the event comes before it
        this.#sse.write(found.map((event) => frame(eventView(event), event.seq)).join(""));
        this.#after = found.at(-1)?.seq ?? this.#after;
      }
      if (found.length < BATCH) return run === null || isEnded(run.state);
      this.#news = true;
      if (!this.#sse.ready) return false; // the socket's drain rings again
    }
  }

  /** Where the reader joins the text: all of the current step's so far. */
  #snapshot(): void {
    if (!this.#sse.ready) return;
    this.#caughtUp = true;
    this.#attach();
    const last = this.#live?.segments.at(-1);
    if (last === undefined) {
      if (!this.#sse.open) this.#sse.write(": open\n\n");
      return;
    }
    this.#segment = (this.#live?.segments.length ?? 1) - 1;
    this.#offset = last.text.length;
    this.#sse.write(this.#textFrame("run.snapshot", last.step, 0, last.text));
  }

  /** A run that waited comes back as another live run. */
  #attach(): void {
    const live = this.#deps.conversations.live(this.#run.id);
    if (live === undefined || live === this.#live) return;
    this.#unfollow();
    this.#live = live;
    this.#segment = 0;
    this.#offset = 0;
    this.#unfollow = live.follow(() => this.#ring(live.ending !== null));
  }

  #sendText(): void {
    if (!this.#caughtUp) return;
    this.#drainText();
    this.#attach();
    this.#drainText();
  }

  #drainText(): void {
    for (
      let at = this.#live?.segments[this.#segment];
      at !== undefined;
      at = this.#live?.segments[this.#segment]
    ) {
      if (at.text.length > this.#offset) {
        const text = at.text.slice(this.#offset);
        this.#sse.write(this.#textFrame("chunk", at.step, this.#offset, text));
        this.#offset = at.text.length;
      }
      if (!at.done) return;
      this.#segment += 1;
      this.#offset = 0;
    }
  }

  /** `offset` counts UTF-16 code units of the step's text. Such a frame has no id: it is not resumed from. */
  #textFrame(type: "chunk" | "run.snapshot", step: number, offset: number, text: string): string {
    return frame({
      type,
      session_id: this.#run.sessionId,
      run_id: this.#run.id,
      ts: new Date(this.#deps.clock.now()).toISOString(),
      data: { run_id: this.#run.id, step, offset, text },
    });
  }

  #end(): void {
    this.#over = true;
    this.#sse.end("");
  }

  #stop(): void {
    this.#over = true;
    for (const cleanup of this.#cleanups.splice(0)) cleanup();
  }
}

/** `data` is one line: JSON text holds no line breaks. */
function frame(value: Readonly<Record<string, unknown>> & { readonly type: string }, id?: number): string {
  const lead = id === undefined ? "" : `id: ${id}\n`;
  return `${lead}event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
}
