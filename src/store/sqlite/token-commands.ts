import type Database from "better-sqlite3";
import type { TokenRecord } from "../ports.ts";

/** Tokens; `tokens_live` holds that a name has one that works. */
export class TokenCommands {
  readonly #insert: Database.Statement<
    [string, string, string, string | null, number, number | null, number | null]
  >;
  readonly #retireExpired: Database.Statement<[string, number]>;
  readonly #live: Database.Statement<[string]>;
  readonly #revoke: Database.Statement<[number, string]>;

  constructor(db: Database.Database) {
    this.#insert = db.prepare(`
      INSERT INTO tokens (name, hash, scopes, agent, created_at, expires_at, revoked_at) VALUES (?, ?, ?, ?, ?, ?, ?)`);
    this.#retireExpired = db.prepare(`
      UPDATE tokens SET revoked_at = expires_at WHERE name = ? AND revoked_at IS NULL AND expires_at <= ?`);
    this.#live = db.prepare("SELECT 1 FROM tokens WHERE name = ? AND revoked_at IS NULL");
    this.#revoke = db.prepare("UPDATE tokens SET revoked_at = ? WHERE name = ? AND revoked_at IS NULL");
  }

  /** An expired token does not hold its name: it is retired on the way. */
  create(token: TokenRecord): boolean {
    this.#retireExpired.run(token.name, token.createdAt);
    if (this.#live.get(token.name) !== undefined) return false;
    const { name, hash, agent, createdAt, expiresAt, revokedAt } = token;
    this.#insert.run(name, hash, JSON.stringify(token.scopes), agent, createdAt, expiresAt, revokedAt);
    return true;
  }

  revoke({ name, at }: { readonly name: string; readonly at: number }): boolean {
    return this.#revoke.run(at, name).changes > 0;
  }
}
