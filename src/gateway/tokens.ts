import { hash as digest, randomBytes, timingSafeEqual } from "node:crypto";
import { BeamclawError } from "../domain/error-catalogue.ts";
import type { AgentName } from "../domain/ids.ts";
import type { Clock } from "../kernel/clock.ts";
import type { TokenRecord, TokenStore } from "../store/ports.ts";
import { type Caller, isScope, type Scope } from "./caller.ts";

/** 43 base64url characters are 256 bits. */
const TOKEN = /^beamclaw_[A-Za-z0-9_-]{43}$/;
/** Part of principals (`api:<token>/<user>`), so neither slash nor colon. */
const TOKEN_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
/** 43 random characters of 64 hold about 31 different ones; a placeholder holds a handful. */
const LEAST_DISTINCT = 12;

/** Name of the token that the first start writes to the home directory. */
export const OWNER_TOKEN = "owner";

export const mintTokenSecret = (): string => `beamclaw_${randomBytes(32).toString("base64url")}`;

/** Whether a secret is one that could have been minted: placeholders and home-made ones are not. */
export function isStrongSecret(secret: string): boolean {
  return TOKEN.test(secret) && new Set(secret.slice("beamclaw_".length)).size >= LEAST_DISTINCT;
}

const sha256 = (text: string): Buffer => digest("sha256", text, "buffer");

export interface NewToken {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly agent: AgentName | null;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number | null;
}

interface Entry {
  readonly hash: Buffer;
  readonly expiresAt: number;
  readonly caller: Caller;
}

/**
 * The live tokens in memory, in front of the store. Tokens are created and revoked through the book, so that
 * a revoked one is refused from the very next request on.
 */
export class TokenBook {
  readonly #store: TokenStore;
  readonly #clock: Clock;
  #entries: ReadonlyMap<string, Entry> = new Map();

  private constructor(store: TokenStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  static async open(store: TokenStore, clock: Clock): Promise<TokenBook> {
    const book = new TokenBook(store, clock);
    await book.refresh();
    return book;
  }

  /** The caller behind a secret, or null: unknown, revoked, expired and badly shaped look the same. */
  find(secret: string): Caller | null {
    if (!TOKEN.test(secret)) return null;
    const hash = sha256(secret);
    const entry = this.#entries.get(hash.toString("hex"));
    if (entry === undefined || !timingSafeEqual(entry.hash, hash)) return null;
    return entry.expiresAt > this.#clock.now() ? entry.caller : null;
  }

  /** Stores a new token and returns its secret, which is kept nowhere. Throws `token_exists`, `invalid_request`. */
  async create(token: NewToken): Promise<string> {
    if (token.scopes.includes("owner")) {
      throw new BeamclawError("invalid_request", "scopes: there is one owner; use admin", {
        param: "scopes",
      });
    }
    if ((await this.#store.list()).some(({ name }) => name === token.name)) {
      // Principals carry the token's name: a second token of that name would inherit the first one's conversations.
      throw new BeamclawError("token_exists", `the name ${token.name} is or was in use; choose another`);
    }
    const secret = mintTokenSecret();
    await this.#add(token, secret);
    return secret;
  }

  /** Makes `secret` (from the owner's token file) the owner token, in place of any other. */
  async ensureOwner(secret: string): Promise<void> {
    if (!isStrongSecret(secret)) {
      throw new BeamclawError(
        "configuration",
        "the token file holds no strong token; delete it and start again",
      );
    }
    if (this.find(secret)?.token === OWNER_TOKEN) return;
    await this.#store.revoke(OWNER_TOKEN, this.#clock.now());
    await this.#add({ name: OWNER_TOKEN, scopes: ["owner"], agent: null, expiresAt: null }, secret);
  }

  async revoke(name: string): Promise<boolean> {
    const revoked = await this.#store.revoke(name, this.#clock.now());
    await this.refresh();
    return revoked;
  }

  async list(): Promise<readonly TokenRecord[]> {
    return this.#store.list();
  }

  /** Reads the store again; needed only where something else has written tokens. */
  async refresh(): Promise<void> {
    const entries = new Map<string, Entry>();
    for (const record of await this.#store.list()) {
      if (record.revokedAt === null) entries.set(record.hash, entryOf(record));
    }
    this.#entries = entries;
  }

  async #add(token: NewToken, secret: string): Promise<void> {
    checkNewToken(token);
    const now = this.#clock.now();
    const hash = sha256(secret).toString("hex");
    const created = await this.#store.create({ ...token, hash, createdAt: now, revokedAt: null });
    if (!created) throw new BeamclawError("token_exists", `a token named ${token.name} exists`);
    await this.refresh();
  }
}

function checkNewToken({ name, scopes }: NewToken): void {
  if (!TOKEN_NAME.test(name)) {
    throw new BeamclawError("invalid_request", "name: letters, digits, dot, dash, underscore; at most 64", {
      param: "name",
    });
  }
  const unknown = scopes.find((scope) => !isScope(scope));
  if (unknown !== undefined || scopes.length === 0) {
    const problem = unknown === undefined ? "at least one is needed" : `unknown scope ${unknown}`;
    throw new BeamclawError("invalid_request", `scopes: ${problem}`, { param: "scopes" });
  }
}

function entryOf(record: TokenRecord): Entry {
  const known: ReadonlySet<Scope> = new Set(record.scopes.filter(isScope));
  return {
    hash: Buffer.from(record.hash, "hex"),
    expiresAt: record.expiresAt ?? Infinity,
    caller: { door: "token", token: record.name, scopes: known, agent: record.agent },
  };
}
