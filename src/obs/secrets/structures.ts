import { BACKSLASH, isAlnum, isDigit, isQuote, isSpace, isWord, startsToken, wordEnd } from "./characters.ts";
import { isPlaceholder, looksRandom } from "./shapes.ts";
import {
  fixedTail,
  more,
  pass,
  prefixedTail,
  redact,
  runEnd,
  runTail,
  type Rule,
  type Tail,
} from "./verdict.ts";

/** Secrets known by their structure: private-key blocks, JWTs, URL passwords, bot tokens, webhook addresses. */

// === Private keys

/** Longest key block that is waited for; an unterminated one is taken up to here or to the next quote. */
export const MAX_KEY_BLOCK = 16_384;

const KEY_BEGIN = /^-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/;
const KEY_END = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/;
const KEY_MARKER_LENGTH = 80;

/** `-----BEGIN … PRIVATE KEY-----` followed by a line end, real or escaped; a mere mention is none. */
export const keyBlockRule: Rule = (text, at, _word, final) => {
  const rest = text.slice(at, at + KEY_MARKER_LENGTH);
  const begin = KEY_BEGIN.exec(rest);
  if (begin === null) {
    const open = !final && rest.length < KEY_MARKER_LENGTH && /^-----BEGIN[A-Z0-9 -]*$/.test(rest);
    return open ? more(at) : pass;
  }
  const after = at + begin[0].length;
  if (/^(?:[\r\n\\]|[ \t]+[A-Za-z0-9+/=]{16})/.test(text.slice(after, after + 24))) {
    return redact(at, keyBlockTail);
  }
  const undecided = !final && text.length < after + 24 && /^[ \t]*[A-Za-z0-9+/=]*$/.test(text.slice(after));
  return undecided ? more(at) : pass;
};

const keyBlockTail: Tail = {
  take(text, at, taken, final) {
    const limit = Math.min(text.length, at + MAX_KEY_BLOCK - taken);
    const stop = runEnd(text, at, isKeyBlockCharacter, limit);
    const end = KEY_END.exec(text.slice(at, stop));
    if (end !== null) return { to: at + end.index + end[0].length, done: true };
    if (stop < text.length || final) return { to: stop, done: true };
    return { to: Math.max(at, stop - KEY_MARKER_LENGTH), done: false }; // the end marker may be half here
  },
};

const isKeyBlockCharacter = (code: number): boolean => code !== 34 && code !== 39 && code !== 96;

// === JSON web tokens

const MAX_JWT_HEADER = 480;
const isTokenOrDot = (code: number): boolean => isWord(code) || code === 46;
const jwtTail = runTail(isTokenOrDot);

/** `eyJ…` (`{"` in base64url), then at least one more part. A header beyond the limit is taken as well. */
export const jwtRule: Rule = (text, at, _word, final) => {
  if (!startsToken(text, at)) return pass;
  const dot = runEnd(text, at, isWord, at + MAX_JWT_HEADER);
  if (dot - at === MAX_JWT_HEADER) return redact(at, jwtTail);
  if (dot === text.length) return final ? pass : more(at);
  if (text[dot] !== "." || dot - at < 12) return pass;
  const part = runEnd(text, dot + 1, isWord, dot + 9);
  if (part - dot - 1 === 8) return redact(at, jwtTail);
  return part === text.length && !final ? more(at) : pass;
};

// === URLs

const MAX_AUTHORITY = 300;
const inArgument = (code: number): boolean => !isSpace(code) && !isQuote(code) && code !== BACKSLASH;
const inAuthority = (code: number): boolean => inArgument(code) && !ENDS_AUTHORITY.has(code);
const ENDS_AUTHORITY = new Set(Array.from("/?#<>", (character) => character.charCodeAt(0)));

/** The password of `scheme://user:password@host`, or a user part that is a token itself. */
export const userinfoRule: Rule = (text, at, word, final) => {
  const start = at + word.length;
  const end = authorityEnd(text, start);
  const open = end === text.length && !final && end - start < MAX_AUTHORITY;
  const authority = text.slice(start, end);
  const colon = authority.indexOf(":");
  if (open) {
    const isHost = colon < 0 || /^\d{0,5}$/.test(authority.slice(colon + 1));
    return more(isHost ? start : start + colon + 1);
  }
  const sign = authority.lastIndexOf("@");
  if (sign < 0) return pass;
  const from = colon < 0 || colon > sign ? 0 : colon + 1;
  const secret = authority.slice(from, sign);
  if (secret === "" || isPlaceholder(secret) || (from === 0 && !isBareToken(secret))) return pass;
  return redact(start + from, fixedTail(secret.length));
};

/** Where the authority ends. What follows its colon and is no port is a password, which may hold slashes. */
function authorityEnd(text: string, start: number): number {
  const end = runEnd(text, start, inAuthority, start + MAX_AUTHORITY);
  const authority = text.slice(start, end);
  const isPlain = authority.includes("@") || /^(?:\[|[^:]*(?::\d{0,5})?$)/.test(authority);
  return isPlain ? end : runEnd(text, start, inArgument, start + MAX_AUTHORITY);
}

const isBareToken = (user: string): boolean => user.length >= 20 && looksRandom(user);

const webhookTail = runTail((code) => isWord(code) || code === 47);

/** The secret path of an incoming webhook: `hooks.slack.com/services/…`, `…/api/webhooks/ID/…`. */
export const webhookRule: Rule = (text, at, word, final) => {
  const start = at + word.length;
  const ours = word === "/webhooks/" ? /discord(?:app)?\.com\/api$/i : /hooks\.slack\.com$/i;
  if (!ours.test(text.slice(Math.max(0, at - 24), at))) return pass;
  if (start === text.length) return final ? pass : more(start);
  return isAlnum(text.charCodeAt(start)) ? redact(start, webhookTail) : pass;
};

/** `curl -u user:password`, also `--user` and with quotes. */
export const curlUserRule: Rule = (text, at, word, final) => {
  const end = wordEnd(text, at);
  if (end === text.length && !final) return more(at);
  if (end - at !== word.length || !/\bcurl\b[^\n]*$/.test(text.slice(Math.max(0, at - 128), at))) return pass;
  const start = end + (/^ {1,4}["']?/.exec(text.slice(end, end + 6))?.[0].length ?? 0);
  const stop = runEnd(text, start, inArgument, start + MAX_AUTHORITY);
  if (stop === text.length && !final && stop - start < MAX_AUTHORITY) return more(end);
  const argument = text.slice(start, stop);
  const colon = argument.indexOf(":");
  const password = argument.slice(colon + 1);
  if (colon < 0 || password === "" || isPlaceholder(password) || /^\d+$/.test(password)) return pass;
  return redact(start + colon + 1, runTail(inArgument));
};

// === Bot tokens

/** Telegram: the bot's number, a colon, 35 characters. `word` is the number with its colon. */
export const telegramRule: Rule = (text, at, word, final) => {
  if (at > 0 && isDigit(text.charCodeAt(at - 1))) return pass;
  const start = at + word.length;
  const end = runEnd(text, start, isWord, start + 30);
  if (end - start === 30) return redact(at, prefixedTail(word.length, isWord));
  return end === text.length && !final ? more(at) : pass;
};

/** Discord: the bot's number in base64, a dot, six characters, a dot, the rest. */
export const discordRule: Rule = (text, at, word, final) => {
  if (!startsToken(text, at)) return pass;
  const middle = runEnd(text, at + word.length, isWord, at + word.length + 7);
  if (middle === text.length && !final) return more(at);
  if (middle - at - word.length !== 6 || text[middle] !== ".") return pass;
  const end = runEnd(text, middle + 1, isWord, middle + 26);
  if (end - middle === 26) return redact(at, jwtTail);
  return end === text.length && !final ? more(at) : pass;
};
