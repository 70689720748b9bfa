/**
 * A value that is made when it is first asked for, and kept. For what a start does not need: all schemas together
 * take as long to build as an empty Node takes to start.
 */
export function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}
