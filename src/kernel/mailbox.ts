/** Taken slots are cut off in bulk once there are this many, so that taking an item is O(1) on average. */
const COMPACT_AT = 64;

/**
 * A bounded queue with one consumer. What does not fit is refused to the sender, who can still tell its
 * caller; nothing that was taken in is dropped. An idle mailbox holds no array and no promise.
 */
export class Mailbox<T> implements AsyncIterable<T, undefined> {
  readonly #capacity: number;
  /** Absent while empty. Items before `#head` have been taken. */
  #items: (T | undefined)[] | undefined;
  #head = 0;
  #closed = false;
  #consumed = false;
  /** The consumer's wait for the next item; only ever set while the mailbox is empty. */
  #wake: (() => void) | undefined;

  /** `capacity`: the number of items that may wait, 1 or more. */
  constructor(capacity: number) {
    if (!(capacity >= 1)) throw new RangeError("a mailbox holds at least one item");
    this.#capacity = capacity;
  }

  /** Items that wait. */
  get size(): number {
    return this.#items === undefined ? 0 : this.#items.length - this.#head;
  }

  /** False when the mailbox is full or closed: the item was refused, and the sender must say so. */
  push(item: T): boolean {
    if (this.#closed || this.size >= this.#capacity) return false;
    if (this.#items === undefined) this.#items = [item];
    else this.#items.push(item);
    this.#rouse();
    return true;
  }

  /** Refuses items from now on. The consumer still gets those that wait, then its loop ends. */
  close(): void {
    this.#closed = true;
    this.#rouse();
  }

  /** Takes everything that waits, oldest first, past the consumer. */
  drain(): T[] {
    const rest = (this.#items?.slice(this.#head) ?? []) as T[];
    this.#items = undefined;
    this.#head = 0;
    return rest;
  }

  /** Throws when another loop is still reading: two consumers would each see half of the messages. */
  [Symbol.asyncIterator](): AsyncIterator<T, undefined> {
    if (this.#consumed) throw new Error("a mailbox has exactly one consumer");
    this.#consumed = true;
    return {
      next: () => this.#next(),
      return: () => {
        this.#consumed = false;
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }

  async #next(): Promise<IteratorResult<T, undefined>> {
    for (;;) {
      const items = this.#items;
      if (items !== undefined) return { done: false, value: this.#take(items) };
      if (this.#closed) return { done: true, value: undefined };
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #take(items: (T | undefined)[]): T {
    const item = items[this.#head] as T; // `#head` is within `items` for as long as there is an array
    items[this.#head] = undefined;
    this.#head += 1;
    if (this.#head === items.length) {
      this.#items = undefined;
      this.#head = 0;
    } else if (this.#head >= COMPACT_AT && this.#head * 2 >= items.length) {
      items.splice(0, this.#head);
      this.#head = 0;
    }
    return item;
  }

  #rouse(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
