import { toStoreError } from "./store-error.ts";

/**
 * A placeholder for joins. SQLite built with STAT4 plans a join anew each time a bare `?` in it is bound, because
 * the value could change the plan; that is ten times the cost of our point queries. It cannot look into a
 * subquery, so a statement with this placeholder is planned once.
 */
export const parameter = "(SELECT ?)";

/** Runs statements, their errors classified. */
export function guarded<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw toStoreError(error);
  }
}
