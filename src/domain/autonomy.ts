/** How much an agent may do by itself, least first. */
export const autonomyLevels = ["read_only", "supervised", "full"] as const;
export type Autonomy = (typeof autonomyLevels)[number];

/** True when `have` reaches at least `need`. */
export const reaches = (have: Autonomy, need: Autonomy): boolean =>
  autonomyLevels.indexOf(have) >= autonomyLevels.indexOf(need);

/**
 * What a tool call does to the world. `none` may be repeated freely; `internal` changes workspace files
 * (journalled, never repeated, no approval); `external` is journalled, never repeated, and asks first.
 */
export type Effect = "none" | "internal" | "external";
