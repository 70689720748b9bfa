/**
 * What a rule says about one place of a text.
 *
 * The contract that makes a stream come out the same however it is cut: while more text may follow (`final`
 * false), a rule answers `pass` or `redact` only where no continuation could change its mind, and `more`
 * otherwise. A rule looks back at most `LOOK_BACK` characters and asks for more at most `LOOK_AHEAD` long.
 */
export type Verdict =
  | { readonly kind: "pass" }
  /** Undecided: everything from `from` on is held back until more text arrives. */
  | { readonly kind: "more"; readonly from: number }
  /** A secret starts at `from` (at or after what has been shown); `tail` finds its end. */
  | { readonly kind: "redact"; readonly from: number; readonly tail: Tail };

/** Finds where a secret ends, in pieces if need be, so that an endless one costs no memory. */
export interface Tail {
  /**
   * Reads on at `at`, the first character not yet taken; `taken` have been before. Everything up to `to`
   * belongs to the secret; `done` says whether it ends there. Text after `to` is offered again with more.
   */
  take(text: string, at: number, taken: number, final: boolean): Taken;
}

export interface Taken {
  readonly to: number;
  readonly done: boolean;
}

/** Decides about the trigger `word` found at `at`. */
export type Rule = (text: string, at: number, word: string, final: boolean) => Verdict;

/** Characters before a trigger that a rule may look at. */
export const LOOK_BACK = 192;
/** A value is judged by its first characters only; a longer one is no placeholder and no word. */
export const LOOK_AHEAD = 256;
/** What stands where a secret was. */
export const MARK = "[REDACTED]";

export const pass: Verdict = { kind: "pass" };
export const more = (from: number): Verdict => ({ kind: "more", from });
export const redact = (from: number, tail: Tail): Verdict => ({ kind: "redact", from, tail });

/** A secret of known length. */
export const fixedTail = (length: number): Tail => ({
  take: (text, at, taken) => {
    const to = Math.min(text.length, at + length - taken);
    return { to, done: true };
  },
});

/** A secret that reaches as far as characters that `belongs` accepts (UTF-16 code units). */
export const runTail = (belongs: (code: number) => boolean): Tail => ({
  take: (text, at) => {
    const to = runEnd(text, at, belongs);
    return { to, done: to < text.length };
  },
});

/** The first `length` characters whatever they are (a prefix), then as far as `belongs` accepts. */
export const prefixedTail = (length: number, belongs: (code: number) => boolean): Tail => ({
  take: (text, at, taken) => {
    const to = runEnd(text, taken < length ? at + length - taken : at, belongs);
    return { to, done: to < text.length };
  },
});

/** Index of the first code unit in `at` … `limit` that `belongs` refuses; `limit` (at most the length) if none. */
export function runEnd(
  text: string,
  at: number,
  belongs: (code: number) => boolean,
  limit: number = text.length,
): number {
  const last = Math.min(limit, text.length);
  let end = at;
  while (end < last && belongs(text.charCodeAt(end))) end += 1;
  return end;
}
