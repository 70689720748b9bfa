/** `$NAME` and `${NAME}`; a name is a letter or underscore, then letters, digits and underscores. */
const REFERENCE = /\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))/g;

/** A value shorter than this is no secret, and hiding it would damage ordinary text. */
const SHORTEST_SECRET = 6;

/**
 * Replaces references to variables that `values` holds; every other reference stays as it is. Values are not
 * expanded again. The process environment is never read.
 */
export function expandVariables(text: string, values: ReadonlyMap<string, string>): string {
  return text.replace(REFERENCE, (reference, braced?: string, bare?: string) => {
    return values.get(braced ?? bare ?? "") ?? reference;
  });
}

/** Puts the names back where the values appear: a server may repeat in its answer what it was sent. */
export function hideVariables(text: string, values: ReadonlyMap<string, string>): string {
  const longestFirst = [...values].toSorted(([, a], [, b]) => b.length - a.length);
  let hidden = text;
  for (const [name, value] of longestFirst) {
    if (value.length >= SHORTEST_SECRET) hidden = hidden.replaceAll(value, () => `$${name}`);
  }
  return hidden;
}
