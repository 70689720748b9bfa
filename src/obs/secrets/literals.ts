import { MARK } from "./verdict.ts";

/**
 * Replaces values that are known to be secret (resolved references of the configuration), wherever they occur,
 * also in their JSON-escaped and URL-encoded spellings. A stage before the pattern scanner, so that neither
 * can cut the other's match in half.
 */
export interface LiteralFilter {
  /** Takes the next piece of the text and gives what is settled. */
  push(text: string): string;
  /** Gives the rest. */
  end(): string;
}

/** Shorter values are no secrets worth the name, and replacing them would tear ordinary words apart. */
export const MIN_LITERAL = 6;
/** A longer value is recognised by this many of its first characters, and its rest is redacted as text. */
const MAX_LITERAL = 4_096;

/** All spellings of the given values, longest first; values below `MIN_LITERAL` characters are left out. */
export function spellings(values: readonly string[]): readonly string[] {
  const all = values
    .filter((value) => value.length >= MIN_LITERAL && value.length <= MAX_LITERAL)
    .flatMap((value) => [
      value,
      JSON.stringify(value).slice(1, -1),
      encodeURIComponent(value.toWellFormed()),
    ]);
  return [...new Set(all)].toSorted((a, b) => b.length - a.length);
}

const escapePattern = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");

export function createLiteralFilter(literals: readonly string[]): LiteralFilter {
  const pattern = new RegExp(literals.map(escapePattern).join("|"), "g");
  let held = "";
  const settle = (final: boolean): string => {
    const hold = final ? held.length : startOfPossible(held, literals);
    let shown = "";
    let at = 0;
    pattern.lastIndex = 0;
    for (let match = pattern.exec(held); match !== null && match.index < hold; match = pattern.exec(held)) {
      shown += held.slice(at, match.index) + MARK;
      at = match.index + match[0].length;
    }
    const to = Math.max(at, hold);
    shown += held.slice(at, to);
    held = held.slice(to);
    return shown;
  };
  return {
    push(text) {
      held += text;
      return settle(false);
    },
    end: () => settle(true),
  };
}

/** Where the earliest literal starts that the end of `text` may still grow into; the length if none. */
function startOfPossible(text: string, literals: readonly string[]): number {
  let earliest = text.length;
  for (const literal of literals) {
    const first = literal.slice(0, 1);
    let at = text.indexOf(first, Math.max(0, text.length - literal.length + 1));
    while (at >= 0 && at < earliest) {
      if (literal.startsWith(text.slice(at))) earliest = at;
      else at = text.indexOf(first, at + 1);
    }
  }
  return earliest;
}
