/** The owner's token in the home directory: made at the first start, readable by its owner only. */
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { mintTokenSecret } from "../gateway/tokens.ts";
import type { Home } from "./home.ts";

/** The token's secret; `created` says whether this start has made it. */
export function ownerToken(home: Home): { readonly secret: string; readonly created: boolean } {
  const known = readToken(home.tokenFile);
  if (known !== null) {
    chmodSync(home.tokenFile, 0o600);
    return { secret: known, created: false };
  }
  const secret = mintTokenSecret();
  writeFileSync(home.tokenFile, `${secret}\n`, { mode: 0o600, flag: "wx" });
  return { secret, created: true };
}

function readToken(file: string): string | null {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}
