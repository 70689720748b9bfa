import { isWord, MAX_NAME, wordStart } from "./characters.ts";
import { judge, TRIGGER_EDGE, type Trigger } from "./triggers.ts";
import { LOOK_BACK, MARK, type Tail, type Verdict } from "./verdict.ts";

/** In a word too long for a name, only its end can still become a trigger. */
const LONGEST_TRIGGER = 32;

/**
 * Walks from trigger to trigger, asks their rules, and shows what they pass. One walk serves whole texts and
 * streams, which is why both come out the same; the rules' contract is in `verdict.ts`.
 */
export class Scanner {
  readonly #search: (text: string, from: number) => Trigger | null;
  /** What has not been decided, after some decided text for rules to look back at. */
  #text = "";
  /** Everything before this index has been shown or dropped. */
  #decided = 0;
  /** Where to look for the next trigger. */
  #next = 0;
  /** The secret that is being dropped, and how much of it has been. */
  #tail: Tail | null = null;
  #taken = 0;

  constructor(search: (text: string, from: number) => Trigger | null) {
    this.#search = search;
  }

  /** Takes the next piece and returns what may be shown; `final`: it was the last, show the rest. */
  scan(delta: string, final: boolean): string {
    this.#text += delta;
    let shown = "";
    while (this.#dropTail(final)) {
      const trigger = this.#search(this.#text, this.#next);
      if (trigger === null) {
        const safe = final ? this.#text.length : this.#startOfGrowingWord();
        shown += this.#showUpTo(safe);
        this.#next = Math.max(this.#next, safe - TRIGGER_EDGE);
        break;
      }
      const verdict = judge(this.#text, trigger, final);
      if (verdict.kind === "pass") {
        this.#next = trigger.at + 1;
        continue;
      }
      const before = this.#secretBefore(verdict.from, trigger, final);
      shown += this.#showUpTo(before?.from ?? verdict.from);
      if (verdict.kind === "more" || before?.kind === "more") {
        this.#next = trigger.at;
        break;
      }
      shown += MARK;
      this.#decided = Math.max(this.#decided, verdict.from);
      this.#next = trigger.at + 1;
      this.#tail = verdict.tail;
      this.#taken = 0;
    }
    this.#forget(final);
    return shown;
  }

  /**
   * Between a trigger and what it gives away, a name for instance, another secret may stand. Then nothing from
   * that one on is shown either.
   */
  #secretBefore(end: number, { at }: Trigger, final: boolean): Exclude<Verdict, { kind: "pass" }> | null {
    for (let next = this.#search(this.#text, at + 1); next !== null && next.at < end;) {
      const verdict = judge(this.#text, next, final);
      if (verdict.kind !== "pass" && verdict.from < end) return verdict;
      next = this.#search(this.#text, next.at + 1);
    }
    return null;
  }

  /** Drops what belongs to the open secret; false while it may go on in text to come. */
  #dropTail(final: boolean): boolean {
    if (this.#tail === null) return true;
    const { to, done } = this.#tail.take(this.#text, this.#decided, this.#taken, final);
    this.#taken += to - this.#decided;
    this.#decided = to;
    this.#next = Math.max(this.#next, to);
    if (!done && !final) return false;
    this.#tail = null;
    return true;
  }

  #showUpTo(index: number): string {
    if (index <= this.#decided) return "";
    const shown = this.#text.slice(this.#decided, index);
    this.#decided = index;
    return shown;
  }

  #startOfGrowingWord(): number {
    const { length } = this.#text;
    if (length === 0 || !isWord(this.#text.charCodeAt(length - 1))) return length;
    const start = wordStart(this.#text, length);
    return length - start > MAX_NAME ? length - LONGEST_TRIGGER : start;
  }

  #forget(final: boolean): void {
    if (final) {
      this.#text = "";
      this.#decided = 0;
      this.#next = 0;
      return;
    }
    const excess = Math.min(this.#decided, this.#next) - LOOK_BACK;
    if (excess < LOOK_BACK) return; // cut now and then, not at every piece
    this.#text = this.#text.slice(excess);
    this.#decided -= excess;
    this.#next -= excess;
  }
}
