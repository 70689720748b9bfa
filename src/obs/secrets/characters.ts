/** Character classes of the scanner, over UTF-16 code units. */

export const isDigit = (code: number): boolean => code >= 48 && code <= 57;
const isUpper = (code: number): boolean => code >= 65 && code <= 90;
const isLower = (code: number): boolean => code >= 97 && code <= 122;
export const isAlnum = (code: number): boolean => isLower(code) || isDigit(code) || isUpper(code);
/** `A–Z a–z 0–9 _ -`: what identifiers and most tokens are made of. A maximal run of these is a word. */
export const isWord = (code: number): boolean => isAlnum(code) || code === 95 || code === 45;
/** Blank within a line. */
export const isBlank = (code: number): boolean => code === 32 || code === 9;
export const isNewline = (code: number): boolean => code === 10 || code === 13;
export const isSpace = (code: number): boolean => isBlank(code) || isNewline(code);
export const isQuote = (code: number): boolean => code === 34 || code === 39 || code === 96;
export const BACKSLASH = 92;

/** Longest word that can be the name of a value; longer ones are data. */
export const MAX_NAME = 64;

/** Start of the word that holds index `at`, no further back than a name can reach plus one. */
export function wordStart(text: string, at: number): number {
  let start = at;
  const limit = Math.max(0, at - MAX_NAME - 1);
  while (start > limit && isWord(text.charCodeAt(start - 1))) start -= 1;
  return start;
}

/** End of the word that holds index `at`, no further than a name can reach plus one. */
export function wordEnd(text: string, at: number): number {
  let end = at;
  const limit = Math.min(text.length, at + MAX_NAME + 1);
  while (end < limit && isWord(text.charCodeAt(end))) end += 1;
  return end;
}

const ESCAPE_BEFORE = /(?:\\[nrtbf]|\\u[0-9a-f]{4}|%[0-9a-f]{2})$/i;

/**
 * Whether a token may start at `at`: at the text's start, after anything but a letter or digit, or right
 * after an escape (`\n`, `\u0026`, `%3D`), whose last letter is no part of the text's meaning.
 */
export function startsToken(text: string, at: number): boolean {
  if (at === 0 || !isAlnum(text.charCodeAt(at - 1))) return true;
  return ESCAPE_BEFORE.test(text.slice(Math.max(0, at - 6), at));
}

/** Length of the escape's own letters at the start of a word that follows a backslash: `\npassword` is 1. */
export function escapeLetters(text: string, start: number): number {
  if (start === 0 || text.charCodeAt(start - 1) !== BACKSLASH) return 0;
  return /^(?:u[0-9a-f]{4}|[nrtbf])/i.exec(text.slice(start, start + 5))?.[0].length ?? 0;
}

/** True if nothing but blanks, quotes and list or comment marks stands before `at` on its line. */
export function startsLine(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - 40), at);
  return /(?:^|[\r\n]|\\[nr])(?:[ \t"'`*#>+{-]|\/\/|export |set )*$/.test(at > 40 ? `~${before}` : before);
}
