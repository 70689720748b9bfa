/** Which names announce a secret: `OPENAI_API_KEY`, `clientSecret`, `x-auth-token`, `max_tokens` (no). */

/**
 * How sure a name makes us that its value is a secret. `password` and `secret`: nearly always. `token`: unless
 * it is a count or a word. `header`: a credential after an optional scheme. `cookie`: a list of pairs.
 * `shaped`: only a value that looks random. `null`: the name says nothing.
 */
export type NameKind = "password" | "secret" | "token" | "header" | "cookie" | "shaped";

/** Judges the name of a field, variable, header or parameter, in any case style. */
export function kindOfName(name: string): NameKind | null {
  if (!MAY_ANNOUNCE.test(name)) return null;
  const parts = name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1_$2")
    .toLowerCase()
    .split(/[^a-z0-9]+|(?<=[a-z])\d+$/)
    .filter((part) => part !== "" && !/^\d+$/.test(part));
  const kind = kindOfParts(parts);
  if (kind !== null) return kind;
  return parts.at(-1) === "key" && /^[A-Z0-9]+_(?:[A-Z0-9_]+_)?KEY$/.test(name) ? "shaped" : null;
}

/** A cheap first look that spares most names (`prompt_tokens`, `keyword`, `author`) the splitting. */
const MAY_ANNOUNCE =
  /(?:pass|pwd?|wor[dt]|passwd|phrase|code|secret|credentials?|token|key|auth|authorization|cookie|base|confirm(?:ation)?|repeat|value|plain|(?:base|b)64|raw)[_-]?\d*$/i;

function kindOfParts(parts: readonly string[]): NameKind | null {
  const last = parts.at(-1);
  if (last === undefined) return null;
  const before = parts.at(-2) ?? "";
  if (FILLERS.has(last) && parts.length > 1) return kindOfParts(parts.slice(0, -1));
  if (last === "key") return KEY_OWNERS.has(before) ? "secret" : null;
  if (last === "pass" || last === "pw") return before === "" ? null : "password";
  if (last === "authorization") return "header";
  if (last === "cookie") return "cookie";
  if (last === "auth") return "shaped";
  if (last === "base" && before === "key") return kindOfParts(parts.slice(0, -1));
  if (PASSWORD_ENDING.test(last)) return "password";
  if (SECRET_ENDING.test(last)) return "secret";
  if (last.endsWith("token")) return HARMLESS_TOKENS.has(before) ? null : "token";
  return null;
}

/** Words that may follow without changing what the value is: `password_confirmation`, `secret_value`. */
const FILLERS = new Set(["confirmation", "confirm", "repeat", "value", "plain", "base64", "b64", "raw"]);

const PASSWORD_ENDING = /(?:passwor[dt]|passwd|passphrase|passcode|^pwd)$/;

const SECRET_ENDING =
  /(?:secret|credentials?|(?:api|access|secret|private|signing|encryption|account|auth)key)$/;

/** Whose key is a secret: `api_key`, `x-api-key`, `AccountKey`; not `public_key`, `primary_key`, `key`. */
const KEY_OWNERS = new Set(
  (
    "api access secret private signing encryption decryption account auth master shared service subscription " +
    "admin deploy webhook application app storage hmac jwt bot encrypt sign"
  ).split(" "),
);

/** Tokens of paging, parsing and language models. */
const HARMLESS_TOKENS = new Set(
  (
    "next prev previous page continuation continue cursor sync start end first last special pad eos bos unk mask " +
    "sep cls per stop max min num total input output prompt completion cached image audio"
  ).split(" "),
);
