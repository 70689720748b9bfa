import { createParser, type EventSourceParser } from "eventsource-parser";

export interface ServerSentEvent {
  /** Type of the event; "" where the stream names none. */
  readonly type: string;
  readonly data: string;
}

/**
 * Server-sent events from bytes in any chunking (WHATWG HTML §9.2.6), characters cut between chunks included.
 * A line or event beyond `maxChars` stops the reader.
 */
export class SseReader {
  readonly #decoder = new TextDecoder();
  readonly #parser: EventSourceParser;
  #overflow = false;

  constructor(onEvent: (event: ServerSentEvent) => void, maxChars: number) {
    this.#parser = createParser({
      maxBufferSize: maxChars,
      onEvent: ({ event, data }) => onEvent({ type: event ?? "", data }),
      onError: ({ type }) => {
        if (type === "max-buffer-size-exceeded") this.#overflow = true; // unknown fields are no error
      },
    });
  }

  /** False once a line or event has exceeded the limit; later bytes are ignored. */
  feed(bytes: Uint8Array): boolean {
    return this.#feed(this.#decoder.decode(bytes, { stream: true }));
  }

  /** The stream is over: an event that lacks its closing blank line counts as complete. */
  end(): boolean {
    return this.#feed(`${this.#decoder.decode()}\n\n`);
  }

  #feed(text: string): boolean {
    if (!this.#overflow) this.#parser.feed(text);
    return !this.#overflow;
  }
}
