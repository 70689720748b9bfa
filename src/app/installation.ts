import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * The product's own files on disk: shipped defaults, agent templates, version. Found by walking up from this
 * module to the nearest package.json, so that it is the same from the sources and from a bundle, wherever
 * the current directory is.
 */
export class Installation {
  readonly root: string;

  constructor(root: string = packageRoot(dirname(fileURLToPath(import.meta.url)))) {
    this.root = root;
  }

  get defaultsFile(): string {
    return join(this.root, "config", "beamclaw.yaml");
  }

  get agentTemplates(): string {
    return join(this.root, "config", "agent");
  }

  get launcher(): string {
    return join(this.root, "bin", "beamclaw");
  }

  /** Text of the shipped configuration, which is the only source of default values. */
  readDefaults(): string {
    return readFileSync(this.defaultsFile, "utf8");
  }

  /** Differs between any two builds; null where the program runs from its sources. */
  readBuild(): string | null {
    if (import.meta.url.endsWith(".ts")) return null;
    return readFileSync(join(this.root, "dist", "build.json"), "utf8");
  }

  /** As package.json has it. */
  readVersion(): string {
    const manifest: unknown = JSON.parse(readFileSync(join(this.root, "package.json"), "utf8"));
    if (typeof manifest === "object" && manifest !== null && "version" in manifest) {
      return String(manifest.version);
    }
    throw new Error(`package.json in ${this.root} has no version`);
  }
}

function packageRoot(start: string): string {
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json"))) return folder;
    if (dirname(folder) === folder) throw new Error(`no package.json above ${start}`);
  }
}
