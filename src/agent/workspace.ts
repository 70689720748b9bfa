import { randomBytes } from "node:crypto";
import { lstatSync } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { type AgentName, isAgentName } from "../domain/ids.ts";

/** The files that make an agent who it is, in the order in which people read them. */
export const bootstrapFiles = [
  "IDENTITY.md",
  "SOUL.md",
  "USER.md",
  "TOOLS.md",
  "AGENTS.md",
  "BOOTSTRAP.md",
  "MEMORY.md",
  "HEARTBEAT.md",
] as const;
export type BootstrapFile = (typeof bootstrapFiles)[number];

export interface AgentSummary {
  readonly name: AgentName;
  /** What the agent calls itself; null while it has not chosen. */
  readonly identityName: string | null;
  readonly path: string;
}

export interface AgentDetails extends AgentSummary {
  /** `text` is null where the file does not exist. */
  readonly files: readonly { readonly name: BootstrapFile; readonly text: string | null }[];
}

export interface AgentRefusal {
  readonly kind: "refused";
  readonly code: "invalid_request" | "agent_exists" | "agent_not_found" | "agent_protected";
  readonly message: string;
}

export type AgentResult = { readonly kind: "ok"; readonly agent: AgentSummary } | AgentRefusal;

/** Longest part of a file that is shown or read into a prompt; the rest is cut with a mark. */
const MAX_READ_BYTES = 20_480;

export interface WorkspacesOptions {
  /** Absolute; one folder for each agent below it. */
  readonly root: string;
  /** Folder with one template for each of `bootstrapFiles`. */
  readonly templates: string;
  /** The agent that always exists. */
  readonly defaultAgent: AgentName;
}

/**
 * The agents' folders. The file system is the only state, so the daemon and an offline command see the same
 * agents. Creating and deleting are single renames: a crash leaves a whole workspace or none, and leftovers
 * have names that are no agent's.
 */
export class Workspaces {
  readonly #options: WorkspacesOptions;

  constructor(options: WorkspacesOptions) {
    this.#options = options;
  }

  /** The agent's folder, whether it exists or not. `AgentName` has no dot and no slash, so it stays below the root. */
  path(name: AgentName): string {
    return join(this.#options.root, name);
  }

  /** A symbolic link is no agent: its content would be somebody else's to delete. */
  exists(name: AgentName): boolean {
    return lstatSync(this.path(name), { throwIfNoEntry: false })?.isDirectory() ?? false;
  }

  /** Sorted by name. */
  async list(): Promise<readonly AgentSummary[]> {
    const entries = await readdir(this.#options.root, { withFileTypes: true }).catch(absent);
    const names = entries.flatMap((entry) =>
      entry.isDirectory() && isAgentName(entry.name) ? [entry.name] : [],
    );
    return Promise.all(names.toSorted().map((name) => this.#summary(name)));
  }

  /** For the daemon's start: makes the default agent if it is not there, ends deletions that a crash cut short. */
  async prepare(): Promise<void> {
    const entries = await readdir(this.#options.root).catch(absent);
    for (const entry of entries.filter((name) => name.startsWith(".old-"))) {
      await rm(join(this.#options.root, entry), { recursive: true, force: true });
    }
    if (!this.exists(this.#options.defaultAgent)) await this.create(this.#options.defaultAgent);
  }

  async create(text: string): Promise<AgentResult> {
    const name = this.#parse(text);
    if (typeof name !== "string") return name;
    const target = this.path(name);
    if (lstatSync(target, { throwIfNoEntry: false }) !== undefined) return exists(name);
    await mkdir(this.#options.root, { recursive: true, mode: 0o700 });
    const draft = this.#hidden("new", name);
    await mkdir(join(draft, "memory"), { recursive: true, mode: 0o700 });
    for (const file of bootstrapFiles) await writeAtomically(join(draft, file), await this.#template(file));
    try {
      await rename(draft, target);
    } catch (error) {
      await rm(draft, { recursive: true, force: true });
      if (hasCode(error, "ENOTEMPTY", "EEXIST", "ENOTDIR")) return exists(name); // another creator was faster
      throw error;
    }
    return { kind: "ok", agent: await this.#summary(name) };
  }

  async show(text: string): Promise<{ readonly kind: "ok"; readonly agent: AgentDetails } | AgentRefusal> {
    const name = this.#existing(text);
    if (typeof name !== "string") return name;
    const files = await Promise.all(
      bootstrapFiles.map(async (file) => ({ name: file, text: await this.read(name, file) })),
    );
    return { kind: "ok", agent: { ...(await this.#summary(name)), files } };
  }

  async delete(text: string): Promise<AgentResult> {
    if (text === this.#options.defaultAgent) {
      return { kind: "refused", code: "agent_protected", message: `${text} is the default agent` };
    }
    const name = this.#existing(text);
    if (typeof name !== "string") return name;
    const agent = await this.#summary(name);
    const grave = this.#hidden("old", name);
    await rename(this.path(name), grave);
    await rm(grave, { recursive: true, force: true });
    return { kind: "ok", agent };
  }

  /** Back to the templates: every bootstrap file anew, daily logs gone. Skills and other files stay. */
  async rehatch(text: string): Promise<AgentResult> {
    const name = this.#existing(text);
    if (typeof name !== "string") return name;
    const folder = this.path(name);
    for (const file of bootstrapFiles) await writeAtomically(join(folder, file), await this.#template(file));
    const logs = await readdir(join(folder, "memory"), { withFileTypes: true }).catch(absent);
    for (const log of logs)
      if (!log.isDirectory()) await rm(join(folder, "memory", log.name), { force: true });
    await mkdir(join(folder, "memory"), { recursive: true, mode: 0o700 });
    return { kind: "ok", agent: await this.#summary(name) };
  }

  /** A bootstrap file's text, cut after 20,480 bytes with a mark; null where it does not exist. */
  async read(name: AgentName, file: BootstrapFile): Promise<string | null> {
    try {
      return await readCapped(join(this.path(name), file));
    } catch (error) {
      if (hasCode(error, "ENOENT", "EISDIR", "ENOTDIR", "ELOOP")) return null;
      throw error;
    }
  }

  /** The bold Name field of IDENTITY.md; null while it holds the template's placeholder. */
  async identityName(name: AgentName): Promise<string | null> {
    const identity = await this.read(name, "IDENTITY.md");
    const chosen = /^[-*]\s*\*\*Name:\*\*[ \t]*(.*)$/m.exec(identity ?? "")?.[1]?.trim() ?? "";
    return chosen === "" || chosen.startsWith("(") ? null : chosen.slice(0, 100);
  }

  async #summary(name: AgentName): Promise<AgentSummary> {
    return { name, identityName: await this.identityName(name), path: this.path(name) };
  }

  #template(file: BootstrapFile): Promise<string> {
    return readFile(join(this.#options.templates, file), "utf8");
  }

  /** A sibling folder whose leading dot keeps it out of `list`. */
  #hidden(what: string, name: AgentName): string {
    return join(this.#options.root, `.${what}-${name}-${randomBytes(6).toString("hex")}`);
  }

  #parse(text: string): AgentName | AgentRefusal {
    if (isAgentName(text)) return text;
    const message = "an agent's name is made of a-z, 0-9, _ and -, at most 64";
    return { kind: "refused", code: "invalid_request", message };
  }

  #existing(text: string): AgentName | AgentRefusal {
    const name = this.#parse(text);
    if (typeof name !== "string" || this.exists(name)) return name;
    return { kind: "refused", code: "agent_not_found", message: `there is no agent ${name}` };
  }
}

const exists = (name: AgentName): AgentRefusal => ({
  kind: "refused",
  code: "agent_exists",
  message: `there is an agent ${name} already`,
});

function absent(error: unknown): [] {
  if (hasCode(error, "ENOENT")) return [];
  throw error;
}

const hasCode = (error: unknown, ...codes: readonly string[]): boolean =>
  error instanceof Error && "code" in error && codes.includes(String(error.code));

/** Readers see the old text or the new one, also after a power cut. */
async function writeAtomically(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  const file = await open(draft, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, path);
}

async function readCapped(path: string): Promise<string> {
  const file = await open(path, "r");
  try {
    const buffer = Buffer.alloc(MAX_READ_BYTES + 1);
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    if (bytesRead <= MAX_READ_BYTES) return buffer.toString("utf8", 0, bytesRead);
    // A character cut in half decodes to U+FFFD at the end; it goes with what was cut.
    return `${buffer.toString("utf8", 0, MAX_READ_BYTES).replace(/\uFFFD$/, "")}\n[… cut after ${MAX_READ_BYTES} bytes]\n`;
  } finally {
    await file.close();
  }
}
