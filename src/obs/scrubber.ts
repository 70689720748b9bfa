import { scrubJsonValue, scrubJsonSource } from "./secrets/json.ts";
import { createLiteralFilter, spellings } from "./secrets/literals.ts";
import { Scanner } from "./secrets/scanner.ts";
import { createTriggerSearch } from "./secrets/triggers.ts";
import { StreamScrubber } from "./stream-scrubber.ts";

/**
 * Takes secrets out of text before it is stored, shown, logged or sent on. It knows token families by prefix
 * and shape, values after names such as `password` in any notation, private keys, JWTs and URL passwords,
 * and values it was given. Ordinary text comes back unchanged, the same string. Time is linear in the input.
 * How rules are added: `secrets/verdict.ts` has their contract, `secrets/triggers.ts` their list.
 */
export interface Scrubber {
  scrubText(text: string): string;
  /** Scrubs every string in a JSON-like value, keys considered. Returns `value` itself if nothing was found. */
  scrubJson(value: unknown): unknown;
  /** Scrubs JSON text by its structure, other text as text. Returns `json` itself if nothing was found. */
  scrubJsonText(json: string): string;
  /** For text that arrives in pieces; one for each text. */
  stream(): StreamScrubber;
}

export interface ScrubberOptions {
  /** Values to redact wherever they occur: resolved secrets of the configuration. Short ones are ignored. */
  readonly literals?: readonly string[];
}

export function createScrubber(options: ScrubberOptions = {}): Scrubber {
  const search = createTriggerSearch();
  const literals = spellings(options.literals ?? []);
  const scrubText = (text: string): string => {
    const unknown = literals.length === 0 ? text : withoutLiterals(text, literals);
    const scrubbed = new Scanner(search).scan(unknown, true);
    return scrubbed === text ? text : scrubbed;
  };
  const stream = (): StreamScrubber =>
    new StreamScrubber(search, literals.length === 0 ? null : createLiteralFilter(literals));
  return {
    scrubText,
    scrubJson: (value) => scrubJsonValue(value, scrubText),
    scrubJsonText: (json) => scrubJsonSource(json, scrubText),
    stream,
  };
}

function withoutLiterals(text: string, literals: readonly string[]): string {
  if (!literals.some((literal) => text.includes(literal))) return text;
  const filter = createLiteralFilter(literals);
  return filter.push(text) + filter.end();
}

const byPattern = createScrubber();

/** `Scrubber.scrubText` with no known values, patterns only. */
export const scrubText = (text: string): string => byPattern.scrubText(text);

/** `Scrubber.scrubJson` with no known values, patterns only. */
export const scrubJson = (value: unknown): unknown => byPattern.scrubJson(value);

/** `Scrubber.scrubJsonText` with no known values, patterns only. */
export const scrubJsonText = (json: string): string => byPattern.scrubJsonText(json);
