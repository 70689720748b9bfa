import { z } from "zod";
import { lazily } from "../kernel/lazily.ts";
import type { Page } from "../store/ports.ts";

/** Query parameters that lists share. */
const cursor = () =>
  z
    .string()
    .regex(/^[A-Za-z0-9+/=_.:-]{1,256}$/, "take it from next_cursor of a former answer")
    .optional();
const limit = lazily(() => z.coerce.number().int().min(1).max(200).default(50));

export const pageQuery = () => ({ cursor: cursor(), limit: limit() });

export const pageOf = (query: { readonly cursor?: string | undefined; readonly limit: number }): Page => ({
  cursor: query.cursor ?? null,
  limit: query.limit,
});

/** `state=queued,running`: one or several of the given states. */
export const statesOf = <const S extends string>(all: readonly S[]) =>
  z
    .string()
    .transform((text, context): readonly S[] => {
      const states = all.filter((state) => text.split(",").includes(state));
      if (states.length === new Set(text.split(",")).size) return states;
      context.addIssue({ code: "custom", message: `one or more of ${all.join(", ")}, parted by commas` });
      return z.NEVER;
    })
    .optional();

/** A history is read by sequence number: the cursor is the last one seen. */
export const historyQuery = lazily(() =>
  z.object({
    cursor: z.coerce.number().int().min(-1).max(Number.MAX_SAFE_INTEGER).default(-1),
    limit: limit(),
  }),
);
