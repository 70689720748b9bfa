import { test } from "vitest";
import type { RequirementId } from "../requirements.ts";

/** A test that answers requirements of `test/requirements.ts`; the ids lead its title. */
export function verifies(
  ids: RequirementId | readonly RequirementId[],
  name: string,
  body: () => unknown,
): void {
  const cited = typeof ids === "string" ? ids : ids.join(" ");
  test(`${cited}: ${name}`, async () => {
    await body();
  });
}
