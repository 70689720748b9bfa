/** What the text of a value looks like: a placeholder, a word, code, a number, or a secret. */

/** True where the value stands for one: `$VAR`, `${VAR}`, `<your-key>`, `{{ key }}`, `****`, a redaction. */
export const isPlaceholder = (value: string): boolean =>
  PLACEHOLDER.test(value) || (value.startsWith("your") ? !/\d/.test(value) : YOURS.test(value));

const PLACEHOLDER = /^(?:\$[A-Za-z_]\w*$|\$[{(]|\$\$|<|\{|%\w+%$|[*x•.…-]{3,}$|x{4,}|\[REDACTED|#\{)/i;
const YOURS = /^["'(]?(?:your|my)[-_](?:own[-_])?[a-z_-]*(?:key|token|password|secret)(?:[-_]here)?$/i;

/** Literals and names of types, which programs and schemas put where a value would stand. */
export const isLiteral = (value: string): boolean => LITERAL.test(value);

const LITERAL =
  /^(?:null|nil|none|true|false|undefined|yes|no|on|off|n\/a|str|string|text|bytes|number|int|integer|bool|boolean|object|array|any|unknown|optional|required|hidden|invalid|incorrect|wrong|missing|expired|empty|set|unset|enabled|disabled|basic|bearer|include|omit|same-origin)[.!?:,]*$/i;

/** True for counts, sizes, dates and ranges. */
export const isNumeric = (value: string): boolean =>
  /^(?:[-+~≈]?[\d.,:/%+_-]*(?:[kKmM]?|px|ms|s)|0x[\da-f]{1,8})$/.test(value);

/** True for prose words and plain identifiers (letters, dots, dashes; no digit), short enough to be one. */
export const isWordlike = (value: string): boolean => value.length <= 32 && WORDLIKE.test(value);

const WORDLIKE = /^[!(*_"“[]*[\p{L}\p{M}$_]*(?:['’./:?_-]{1,2}[\p{L}\p{M}_]*)*[*_.!?…:)\]”"]*$/u;

/** A call, an index, an option type, a pattern: `os.environ[`, `getpass(`, `/^[a-z]+$/`. */
export const isCode = (value: string): boolean =>
  /^\/[\^([]/.test(value) || /^[([!]*(?:new |await )?[A-Za-z_$][\w$.]*\??[([]/.test(value);

/** `process.env.TOKEN`, `config.api_key`, `password1` … : an identifier that only names the secret again. */
export const isReference = (value: string): boolean =>
  /^[A-Za-z_$][\w$.]{0,48}(?:password|secret|token|credentials?|key|auth\w{0,12})$/i.test(value) ||
  (/^[([!&*]*[A-Za-z_$][\w$]*(?:\??\.[A-Za-z_$][\w$]*)*$/.test(value) &&
    /pass|pwd|secret|token|key|auth|cred|env|config|settings|opts|args|param|input|value|props/i.test(
      value,
    ) &&
    !/\d{2}/.test(value));

/** A path or an address, which may hold a secret but is none. */
export const isLocation = (value: string): boolean =>
  /^(?:[~.]{0,2}(?:\/[a-z0-9._-]+)+\/?$|[a-z][a-z0-9+.-]*:\/\/|urn:[a-z])/.test(value);

/**
 * True for text that no one would write by hand: letters with digits, or changing case, or one very long
 * piece. `task-management-system-overview` and `authentication` are none.
 */
export function looksRandom(value: string): boolean {
  if (value.length < 8) return false;
  if (/\d/.test(value) && /[A-Za-z]/.test(value)) return true;
  return /[a-z][A-Z]/.test(value) && /[A-Z]{2}[a-z]|[A-Z][a-z][A-Z]|[+/=]/.test(value)
    ? value.length >= 12
    : /[A-Za-z]{20}/.test(value);
}
