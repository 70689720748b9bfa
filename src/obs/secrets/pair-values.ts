import { Unreachable } from "../../kernel/errors.ts";
import { BACKSLASH, isBlank, isNewline, isQuote, isSpace } from "./characters.ts";
import type { NameKind } from "./names.ts";
import {
  isCode,
  isLiteral,
  isLocation,
  isNumeric,
  isPlaceholder,
  isReference,
  isWordlike,
  looksRandom,
} from "./shapes.ts";
import { LOOK_AHEAD, more, pass, redact, runEnd, runTail, type Tail, type Verdict } from "./verdict.ts";

/** A name that announces a secret, and how its value is written after it. */
export interface Pair {
  readonly kind: NameKind;
  readonly name: string;
  /** Nothing but indentation or list marks stands before the name on its line. */
  readonly startsLine: boolean;
  /**
   * `shell`: `NAME=x` alone on a line. `tight`: `name=x`. `colon`: `name: x`. `loose`: `name = x`, `--name x`.
   * `compared`: `name == x`.
   * `element`: `<name>x</name>`. `bearer`, `basic`: the scheme's credentials.
   */
  readonly form: "shell" | "tight" | "colon" | "loose" | "compared" | "element" | "bearer" | "basic";
}

/** Judges the value that starts at `at`. */
export function judgeValue(text: string, at: number, pair: Pair, final: boolean): Verdict {
  if (at === text.length) return final ? pass : more(at);
  if (pair.form === "element") return judgeElement(text, at, final);
  if (pair.kind === "cookie") return judgeCookie(text, at, final);
  const opening = openingQuote(text, at, final);
  if (opening === "open") return more(at);
  if (opening === null) return judgeUnquoted(text, at, pair, final);
  return judgeQuoted(text, at + opening.length, pair, opening, final);
}

// === Quoted values

interface Quote {
  readonly character: number;
  /** Backslashes before it: one where the text is JSON inside a string, three where that is in a string again. */
  readonly slashes: number;
  /** Of the whole opening, a prefix such as Python's `b"` included. */
  readonly length: number;
}

const OPENING = /^(?:[bruf]{0,2}|@|\$)(\\{0,7})(["'`])/i;
const MAY_OPEN = /^(?:[bruf]{0,2}|@|\$)\\{0,7}$/i;

function openingQuote(text: string, at: number, final: boolean): Quote | "open" | null {
  const head = text.slice(at, at + 10);
  const match = OPENING.exec(head);
  if (match !== null) {
    const [whole, slashes = "", quote = '"'] = match;
    return { character: quote.charCodeAt(0), slashes: slashes.length, length: whole.length };
  }
  return !final && at + head.length === text.length && MAY_OPEN.test(head) ? "open" : null;
}

function judgeQuoted(text: string, at: number, pair: Pair, quote: Quote, final: boolean): Verdict {
  const tail = quotedTail(quote);
  const scheme = schemeLength(text, at, final);
  if (scheme === "open") return more(at);
  const start = at + scheme;
  const window = text.slice(start, start + LOOK_AHEAD);
  const { to, done } = tail.take(window, 0, 0, final);
  if (!done && window.length < LOOK_AHEAD) return more(start);
  const long = !done || to === LOOK_AHEAD;
  return long || quotedIsSecret(window.slice(0, to), pair, start > at) ? redact(start, tail) : pass;
}

function quotedIsSecret(value: string, pair: Pair, scheme: boolean): boolean {
  if (value.trim() === "" || isPlaceholder(value) || value === pair.name) return false;
  if (scheme) return true;
  if (pair.form === "compared" && isWordlike(value)) return false;
  switch (pair.kind) {
    case "password":
      return !isLiteral(value);
    case "secret":
      return !isLiteral(value) && !isLocation(value);
    case "token":
      return (
        !isLiteral(value) && !isLocation(value) && !/^\d{1,9}$/.test(value) && value.toLowerCase() !== "token"
      );
    case "header":
    case "shaped":
      return looksRandom(value) && !/\s/.test(value) && !isLocation(value) && !isReference(value);
    case "cookie":
      return true;
    default:
      throw new Unreachable(pair.kind);
  }
}

/** To the closing quote of the same nesting, or to the line's end if it never comes. */
function quotedTail({ character, slashes }: Quote): Tail {
  return {
    take(text, at, _taken, final) {
      let run = 0; // backslashes directly before `index`
      for (let index = at; index < text.length; index += 1) {
        const code = text.charCodeAt(index);
        if (code === BACKSLASH) run += 1;
        else if (isNewline(code)) return { to: index, done: true };
        else if (code === character && closes(run, slashes)) {
          return { to: index - Math.min(run, slashes), done: true };
        } else run = 0;
      }
      return final ? { to: text.length, done: true } : { to: text.length - run, done: false };
    },
  };
}

/** Whether a quote after `run` backslashes ends a string whose quotes have `slashes` of them. */
const closes = (run: number, slashes: number): boolean =>
  run < slashes || (run - slashes) % (2 * (slashes + 1)) === 0;

// === Unquoted values

const isDelimiter = (code: number): boolean =>
  isSpace(code) || isQuote(code) || code === BACKSLASH || DELIMITERS.has(code);
const DELIMITERS = new Set(Array.from(",;&)}]<>|", (character) => character.charCodeAt(0)));
const inValue = (code: number): boolean => !isDelimiter(code);
const inShellValue = (code: number): boolean => !isSpace(code) && !isQuote(code) && code !== BACKSLASH;

function judgeUnquoted(text: string, at: number, pair: Pair, final: boolean): Verdict {
  const scheme = pair.kind === "header" && pair.form === "colon" ? schemeLength(text, at, final) : 0;
  if (scheme === "open") return more(at);
  const start = at + scheme;
  const belongs = pair.form === "shell" ? inShellValue : inValue;
  const end = runEnd(text, start, belongs, start + LOOK_AHEAD);
  const tail = runTail(belongs);
  if (end - start === LOOK_AHEAD) return redact(start, tail);
  if (end === text.length && !final) return more(start);
  const value = text.slice(start, end);
  if (value === "" || isPlaceholder(value)) return pass;
  const follows = whatFollows(text, end, final);
  if (follows === "open") return more(start);
  if (follows === "assigned" && isWordlike(value)) return judgeTyped(text, end, pair, final);
  if (scheme > 0) {
    const spoken = isWordlike(value) && (follows === "more words" || /^[A-Z_]{3,24}$/.test(value));
    return spoken ? pass : redact(start, tail);
  }
  return unquotedIsSecret(value, pair, follows, text[end] ?? "") ? redact(start, tail) : pass;
}

/** What stands after a value: nothing more on its line, an assignment (the value was a type), or words. */
function whatFollows(
  text: string,
  end: number,
  final: boolean,
): "nothing" | "assigned" | "more words" | "open" {
  const at = runEnd(text, end, isBlank, end + 8);
  if (at + 1 >= text.length && !final) return "open";
  if (at >= text.length) return "nothing";
  const code = text.charCodeAt(at);
  if (isNewline(code) || isQuote(code) || code === BACKSLASH || code === 35) return "nothing";
  return text[at] === "=" && text[at + 1] !== "=" ? "assigned" : "more words";
}

/** `password: str = "x"`: the value proper stands behind the type. */
function judgeTyped(text: string, end: number, pair: Pair, final: boolean): Verdict {
  const sign = runEnd(text, end, isBlank, end + 8);
  const value = runEnd(text, sign + 1, isBlank, sign + 9);
  if (value === text.length && !final) return more(end);
  const opening = openingQuote(text, value, final);
  if (opening === "open") return more(end);
  return opening === null ? pass : judgeQuoted(text, value + opening.length, pair, opening, final);
}

function unquotedIsSecret(value: string, pair: Pair, follows: string, next: string): boolean {
  if (isLiteral(value) || isCode(value + next)) return false;
  if (pair.form === "bearer") return looksRandom(value) || /[A-Za-z]{16}/.test(value);
  if (pair.form === "basic") return isBasicCredentials(value);
  if (pair.kind === "shaped" || pair.kind === "header") {
    const enough = pair.kind === "header" || value.length >= 16;
    return enough && looksRandom(value) && !isLocation(value) && !isReference(value);
  }
  if (isNumeric(value)) return pair.kind !== "token" && /\d{4}/.test(value) && !/^\d{4}-\d\d/.test(value);
  if (pair.form === "shell") return !isLocation(value);
  if (pair.kind === "token" && value.length < 3) return false;
  if (pair.form === "tight") return !(isLocation(value) || (isReference(value) && /^[,)(]$/.test(next)));
  if (isLocation(value) || isReference(value)) return false;
  const alone = pair.startsLine && follows === "nothing";
  if (isWordlike(value)) return alone && pair.kind === "password";
  return alone ? value.length >= 4 : value.length >= (pair.kind === "password" ? 4 : 8);
}

/** Base64 of `user:password` (RFC 7617). */
function isBasicCredentials(value: string): boolean {
  if (!/^[A-Za-z0-9+/]{8,}={0,2}$/.test(value)) return false;
  return /^[\x20-\x7e]*:[\x20-\x7e]*$/.test(Buffer.from(value, "base64").toString("latin1"));
}

const SCHEME = /^(?:bearer|basic|token|apikey|api-key|digest|negotiate)[ \t]+/i;
const MAY_BE_SCHEME = /^[a-z-]{0,9}[ \t]*$/i;

/** Length of an authorization scheme at `at` with its blanks; 0 where none is. */
function schemeLength(text: string, at: number, final: boolean): number | "open" {
  const head = text.slice(at, at + 16);
  if (!final && at + head.length === text.length && MAY_BE_SCHEME.test(head)) return "open";
  return SCHEME.exec(head)?.[0].length ?? 0;
}

// === Elements and cookies

/** `<password>x</password>`: only with its closing tag. */
function judgeElement(text: string, at: number, final: boolean): Verdict {
  const end = runEnd(text, at, inElement, at + LOOK_AHEAD);
  if (end + 1 >= text.length && !final && end - at < LOOK_AHEAD) return more(at);
  if (!text.startsWith("</", end)) return pass;
  const value = text.slice(at, end);
  return value.trim() === "" || isPlaceholder(value) ? pass : redact(at, runTail(inElement));
}

const inElement = (code: number): boolean => code !== 60 && !isNewline(code);

/** `Cookie: a=1; b=2`: every pair, to the line's end or the closing quote. */
function judgeCookie(text: string, at: number, final: boolean): Verdict {
  const head = text.slice(at, at + 80);
  const pairs = /^\\{0,3}["']?[\w.%-]+=/.exec(head);
  if (pairs !== null) return redact(at + (/^\\*["']/.exec(head)?.[0].length ?? 0), cookieTail);
  return !final && head.length < 80 && /^\\{0,3}["']?[\w.%-]*$/.test(head) ? more(at) : pass;
}

const cookieTail = runTail((code) => !isNewline(code) && !isQuote(code) && code !== BACKSLASH);
