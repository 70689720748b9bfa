import { BeamclawError } from "../../domain/error-catalogue.ts";
import type { Page, Paged } from "../ports.ts";

const maxLimit = 200;

/** A query that lists rows newest first: conditions that hold for all, and the page's place by row key. */
export class PageQuery {
  readonly #conditions: string[] = [];
  readonly #parameters: (string | number)[] = [];
  readonly #key: string;
  readonly #limit: number;

  /** `key` is the column that orders the rows, an integer primary key. */
  constructor(page: Page, key: string) {
    this.#key = key;
    this.#limit = Math.min(Math.max(1, page.limit), maxLimit);
    if (page.cursor !== null) this.where(`${key} < ?`, keyOf(page.cursor));
  }

  where(condition: string, ...parameters: (string | number)[]): this {
    this.#conditions.push(condition);
    this.#parameters.push(...parameters);
    return this;
  }

  /** SQL for `select` (up to its FROM clause), with one row more than the page to see whether it goes on. */
  sql(select: string): string {
    const where = this.#conditions.length === 0 ? "" : `WHERE ${this.#conditions.join(" AND ")}`;
    return `${select} ${where} ORDER BY ${this.#key} DESC LIMIT ${this.#limit + 1}`;
  }

  get parameters(): readonly (string | number)[] {
    return this.#parameters;
  }

  page<Row extends { readonly key: number }, T>(rows: readonly Row[], decode: (row: Row) => T): Paged<T> {
    const shown = rows.slice(0, this.#limit);
    const last = shown.at(-1);
    const nextCursor = rows.length > this.#limit && last !== undefined ? String(last.key) : null;
    return { data: shown.map(decode), nextCursor };
  }
}

/** `column IN (…)` over placeholders. */
export const isOneOf = (column: string, values: readonly string[]): string =>
  `${column} IN (${values.map(() => "?").join(", ")})`;

function keyOf(cursor: string): number {
  const key = Number(cursor);
  if (!/^\d{1,15}$/.test(cursor))
    throw new BeamclawError("invalid_request", "unknown cursor", { param: "cursor" });
  return key;
}
