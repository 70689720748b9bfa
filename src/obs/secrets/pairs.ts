import {
  BACKSLASH,
  escapeLetters,
  isBlank,
  isNewline,
  isQuote,
  MAX_NAME,
  startsLine,
  wordEnd,
  wordStart,
} from "./characters.ts";
import { kindOfName, type NameKind } from "./names.ts";
import { judgeValue, type Pair } from "./pair-values.ts";
import { more, pass, runEnd, type Rule, type Verdict } from "./verdict.ts";

/**
 * Names followed by a value: `password = "x"`, `"api_key": "x"`, `\"token\":\"x\"`, `Authorization: Bearer x`,
 * `?token=x`, `--password x`, `<password>x</password>`. Only the value is redacted, so that the text keeps its
 * shape (JSON stays JSON, a URL stays a URL).
 */
export const pairRule: Rule = (text, at, _word, final) => {
  const start = wordStart(text, at);
  const end = wordEnd(text, at);
  if (end - start > MAX_NAME) return pass;
  if (end === text.length && !final) return more(start);
  const kind = kindAt(text, start, end);
  if (kind === null) return pass;
  return judgeSeparator(text, { kind, start, end }, final);
};

interface Name {
  readonly kind: NameKind;
  readonly start: number;
  readonly end: number;
}

/** The kind of the name between `start` and `end`, its surroundings considered. */
function kindAt(text: string, start: number, end: number): NameKind | null {
  const name = text.slice(start, end);
  const letters = escapeLetters(text, start);
  const kind = kindOfName(name) ?? (letters > 0 ? kindOfName(name.slice(letters)) : null);
  if (kind !== null) return kind;
  const bare = name.slice(letters).toLowerCase();
  if (QUERY_SECRETS.has(bare) && /[?&]$|\\u0026$/.test(text.slice(Math.max(0, start - 1), start + letters))) {
    return "shaped";
  }
  if (bare !== "key") return null;
  const before = /([A-Za-z]+) $/.exec(text.slice(Math.max(0, start - 16), start))?.[1];
  return before === undefined ? null : kindOfName(`${before}_key`);
}

/** Parameters that are secrets in the query of a URL and ordinary words elsewhere. */
const QUERY_SECRETS = new Set(["key", "sig", "signature", "x-amz-signature", "code"]);

const isCloser = (code: number): boolean => isQuote(code) || code === BACKSLASH || code === 93 || code === 42; // ] and *
const MAX_BLANKS = 64;

function judgeSeparator(text: string, name: Name, final: boolean): Verdict {
  const closed = runEnd(text, name.end, isCloser, name.end + 8);
  const at = runEnd(text, closed, isBlank, closed + MAX_BLANKS);
  const mayGrow = at === text.length || (at + 2 >= text.length && /[=:!]/.test(text[at] ?? ""));
  if (mayGrow && !final) return more(name.end);
  const separator = SEPARATOR.exec(text.slice(at, at + 3))?.[0];
  if (separator !== undefined) return judgeAssigned(text, name, at, separator, final);
  if (text[at] === ">" && at === name.end && text[name.start - 1] === "<") {
    return judgeValue(text, at + 1, { ...pairOf(text, name), form: "element" }, final);
  }
  if (at > closed && text.startsWith("--", name.start)) {
    return judgeValue(text, at, { ...pairOf(text, name), form: "loose" }, final);
  }
  return pass;
}

/** `:` but not `::`; `=`, `:=`, `=>` and comparisons, whose other side is a value too. */
const SEPARATOR = /^(?:={1,3}>?|!={1,2}|:=|:(?!:))/;

function judgeAssigned(text: string, name: Name, at: number, separator: string, final: boolean): Verdict {
  const after = at + separator.length;
  const emphasised = runEnd(text, after, (code) => code === 42, after + 3);
  const value = runEnd(text, emphasised, isBlank, emphasised + MAX_BLANKS);
  if (value === text.length && !final) return more(value);
  if (value === text.length || isNewline(text.charCodeAt(value))) return pass;
  const tight = at === name.end && value === after;
  const pair = pairOf(text, name);
  if (separator === "=" && tight) {
    const shell = pair.startsLine && /^[A-Z0-9_]+$/.test(pair.name);
    return judgeValue(text, value, { ...pair, form: shell ? "shell" : "tight" }, final);
  }
  return judgeValue(text, value, { ...pair, form: formOf(separator) }, final);
}

function formOf(separator: string): "colon" | "compared" | "loose" {
  if (separator === ":") return "colon";
  return /^(?:==|!)/.test(separator) ? "compared" : "loose";
}

function pairOf(text: string, { kind, start, end }: Name): Omit<Pair, "form"> {
  const escape = escapeLetters(text, start);
  return {
    kind,
    name: text.slice(start + escape, end),
    startsLine: escape > 0 || startsLine(text, start),
  };
}

/** `Bearer x` and `Basic x` without a header's name before them. */
export const schemeRule: Rule = (text, at, word, final) => {
  const start = wordStart(text, at);
  const end = wordEnd(text, at);
  if (end === text.length && !final) return more(start);
  if (end - start !== word.length + escapeLetters(text, start)) return pass;
  const value = runEnd(text, end, isBlank, end + 4);
  if (value === text.length && !final) return more(value);
  if (value === end) return pass;
  const form = word.toLowerCase() === "basic" ? "basic" : "bearer";
  return judgeValue(text, value, { kind: "shaped", name: word, startsLine: false, form }, final);
};
