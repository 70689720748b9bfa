import { kindOfName, type NameKind } from "./names.ts";
import { isLiteral, isLocation, isPlaceholder, looksRandom } from "./shapes.ts";
import { MARK } from "./verdict.ts";

/** Scrubs JSON by its structure: a secret is known by its key as well as by its looks. */
type ScrubText = (text: string) => string;

/** A copy of `value` with its secrets replaced; `value` itself if it holds none. */
export const scrubJsonValue = (value: unknown, scrub: ScrubText): unknown =>
  scrubValue(value, null, 0, scrub);

/** The same for JSON text; text that is no JSON is scrubbed as text. */
export function scrubJsonSource(json: string, scrub: ScrubText): string {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return scrub(json); // cut off or never JSON: the text rules know JSON's notation
  }
  const scrubbed = scrubValue(value, null, 0, scrub);
  return scrubbed === value ? json : JSON.stringify(scrubbed);
}

/** Deeper values are redacted whole: nobody nests so deep in earnest, and recursion needs an end. */
const MAX_DEPTH = 64;

function scrubValue(value: unknown, kind: NameKind | null, depth: number, scrub: ScrubText): unknown {
  if (typeof value === "string") return kind !== null && isSecretField(value, kind) ? MARK : scrub(value);
  if (typeof value === "number") return isSecretNumber(value, kind) ? MARK : value;
  if (typeof value !== "object" || value === null) return value;
  if (depth === MAX_DEPTH) return MARK;
  if (Array.isArray(value)) {
    const items: readonly unknown[] = value;
    const scrubbed = items.map((item) => scrubValue(item, kind, depth + 1, scrub));
    return scrubbed.every((item, index) => item === items[index]) ? value : scrubbed;
  }
  return scrubObject(value, kind, depth, scrub);
}

function scrubObject(value: object, kind: NameKind | null, depth: number, scrub: ScrubText): unknown {
  let changed = false;
  const entries = Object.entries(value).map(([key, field]: [string, unknown]): [string, unknown] => {
    const fieldKind = key === "value" ? kind : kindOfKey(key);
    const scrubbed = [scrub(key), scrubValue(field, fieldKind, depth + 1, scrub)] as const;
    if (scrubbed[0] !== key || scrubbed[1] !== field) changed = true;
    return [scrubbed[0], scrubbed[1]];
  });
  return changed ? Object.fromEntries(entries) : value;
}

/** The kind of a JSON key; `secrets` and `api_keys` are lists of what their singular names. */
function kindOfKey(key: string): NameKind | null {
  return kindOfName(key) ?? (/(?:key|password|secret)s$/i.test(key) ? kindOfName(key.slice(0, -1)) : null);
}

function isSecretField(value: string, kind: NameKind): boolean {
  if (value.trim() === "" || value === MARK || isPlaceholder(value)) return false;
  if (kind === "shaped") return looksRandom(value) && !/\s/.test(value) && !isLocation(value);
  if (kind === "token") return !isLiteral(value) && !/^\d{1,9}$/.test(value);
  return !isLiteral(value);
}

/** A PIN-like number under a password's name; counts (`token: 12`) stay. */
const isSecretNumber = (value: number, kind: NameKind | null): boolean =>
  (kind === "password" || kind === "secret") && Math.abs(value) >= 1_000;
