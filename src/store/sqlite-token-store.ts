import type Database from "better-sqlite3";
import type { TokenRecord, TokenStore } from "./ports.ts";
import { guarded } from "./sqlite/statement.ts";
import type { Writer } from "./writer.ts";

interface TokenRow extends Omit<TokenRecord, "scopes"> {
  readonly scopes: string;
}

/** Tokens by name; revoked ones stay listed, so that a log line naming one can be understood later. */
export class SqliteTokenStore implements TokenStore {
  readonly #writer: Writer;
  readonly #list: Database.Statement<[], TokenRow>;

  constructor(db: Database.Database, writer: Writer) {
    this.#writer = writer;
    this.#list = db.prepare(`
      SELECT name, hash, scopes, agent, created_at AS createdAt, expires_at AS expiresAt, revoked_at AS revokedAt
      FROM tokens ORDER BY key`);
  }

  create(token: TokenRecord): Promise<boolean> {
    return this.#writer.execute("createToken", token);
  }

  revoke(name: string, at: number): Promise<boolean> {
    return this.#writer.execute("revokeToken", { name, at });
  }

  async list(): Promise<readonly TokenRecord[]> {
    return guarded(() => this.#list.all()).map((row) => {
      const scopes: readonly string[] = JSON.parse(row.scopes);
      return { ...row, scopes };
    });
  }
}
