/** JSON from the daemon, read field by field; what is absent or of another shape shows as empty. */

export function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

export const arrayOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The `data` of a list. */
export const dataOf = (page: unknown): readonly unknown[] => arrayOf(objectOf(page)["data"]);

/** A value for people: texts as they are, nothing for null, structures as JSON. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
