import { readFileSync, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { inspect } from "node:util";
import { type Env, envValue } from "./home.ts";

/** How a configuration names a secret. The configuration itself never holds one. */
export type SecretRef = { readonly env: string } | { readonly file: string };

export const isSecretRef = (value: unknown): value is SecretRef => {
  if (typeof value !== "object" || value === null) return false;
  const [key, ...others] = Object.keys(value);
  return others.length === 0 && (key === "env" || key === "file");
};

/** A value that shows itself to nobody by accident: logs, templates, JSON and inspection print a mark. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself; for the one place that sends it out. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }

  [inspect.custom](): string {
    return REDACTED;
  }
}

const REDACTED = "[redacted]";
/** A secret is a line, not a document. */
const MAX_FILE_BYTES = 65_536;

type Lookup =
  | { readonly kind: "found"; readonly secret: Secret; readonly remark: string | null }
  | { readonly kind: "unset"; readonly reason: string };

/**
 * The secrets that a configuration refers to, as they were when it was loaded. A reference that leads
 * nowhere is an ordinary state (its feature is off), never an error.
 */
export class Secrets {
  readonly #found = new Map<string, Lookup>();

  /** Relative `file` references start at `baseDir`, never at the current directory. */
  constructor(refs: Iterable<SecretRef>, source: { readonly env: Env; readonly baseDir: string }) {
    for (const ref of refs) this.#found.set(describeRef(ref), lookUp(ref, source));
  }

  get(ref: SecretRef | null | undefined): Secret | null {
    if (ref === null || ref === undefined) return null;
    const found = this.#found.get(describeRef(ref));
    return found?.kind === "found" ? found.secret : null;
  }

  /** Why `get` answers null, as the end of a sentence. */
  reason(ref: SecretRef): string {
    const found = this.#found.get(describeRef(ref));
    return found?.kind === "unset" ? found.reason : `${describeRef(ref)} was not looked up`;
  }

  /** Things to mend although the secret was found, such as a file that others may read. */
  remarks(): readonly string[] {
    return [...this.#found.values()].flatMap((found) =>
      found.kind === "found" && found.remark !== null ? [found.remark] : [],
    );
  }

  /** The plain values, for the scrubber's list of texts that must never appear anywhere. */
  literals(): readonly string[] {
    return [...this.#found.values()].flatMap((found) =>
      found.kind === "found" ? [found.secret.reveal()] : [],
    );
  }

  /** References (as `describeRef` writes them) whose value differs between the two. */
  changedSince(former: Secrets): ReadonlySet<string> {
    const names = new Set([...this.#found.keys(), ...former.#found.keys()]);
    return new Set([...names].filter((name) => this.#value(name) !== former.#value(name)));
  }

  #value(name: string): string | null {
    const found = this.#found.get(name);
    return found?.kind === "found" ? found.secret.reveal() : null;
  }
}

/** `env:NAME` or `file:PATH`. */
export const describeRef = (ref: SecretRef): string => ("env" in ref ? `env:${ref.env}` : `file:${ref.file}`);

function lookUp(ref: SecretRef, source: { readonly env: Env; readonly baseDir: string }): Lookup {
  if ("file" in ref) return readSecretFile(isAbsolute(ref.file) ? ref.file : join(source.baseDir, ref.file));
  const value = envValue(source.env, ref.env);
  if (value === null) return { kind: "unset", reason: `${ref.env} is not set` };
  return { kind: "found", secret: new Secret(value), remark: null };
}

function readSecretFile(file: string): Lookup {
  try {
    const stat = statSync(file);
    if (!stat.isFile() || stat.size > MAX_FILE_BYTES) {
      return { kind: "unset", reason: `${file} is no small regular file` };
    }
    const value = readFileSync(file, "utf8").trimEnd();
    if (value === "") return { kind: "unset", reason: `${file} is empty` };
    const open = (stat.mode & 0o077) !== 0;
    return {
      kind: "found",
      secret: new Secret(value),
      remark: open ? `${file} can be read by others; run: chmod 600 ${file}` : null,
    };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unreadable";
    return { kind: "unset", reason: `${file} cannot be read (${code})` };
  }
}
