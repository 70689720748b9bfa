/**
 * Reading JSON that somebody else wrote: every accessor answers with the wanted type or undefined, so that a
 * provider's odd answer can be told apart but never throws. Hand-written because it runs once per streamed
 * token, where a schema library would cost more than the parse itself.
 */
export type JsonRecord = Readonly<Record<string, unknown>>;

export const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const asRecord = (value: unknown): JsonRecord | undefined => (isRecord(value) ? value : undefined);

export const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

export const asText = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** A finite number of 0 or more, as token counts and indexes are. */
export const asCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;

/** Undefined where `text` is not JSON (which has no undefined of its own). */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
