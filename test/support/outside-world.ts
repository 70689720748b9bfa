/** The world that tools act on: a file and an HTTP server that remember every effect, in a place the daemon does not own. */
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, watch } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class OutsideWorld implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "beamclaw-outside-"));
  readonly port: number;
  /** `METHOD /path` of every request, in order of arrival. */
  readonly visits: string[] = [];
  readonly #server: Server;
  readonly #waiting: { readonly path: string; readonly arrived: () => void }[] = [];

  private constructor(server: Server) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    server.on("request", (request, response) => this.#visit(request, response));
  }

  static async open(): Promise<OutsideWorld> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new OutsideWorld(server);
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Lines that commands have appended, in order. */
  get lines(): readonly string[] {
    const file = join(this.folder, "log");
    return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
  }

  /** A call of `terminal` that appends a line. */
  append(line: string): string {
    return call("terminal", { command: `echo ${line} >> ${join(this.folder, "log")}` });
  }

  /** A call of `terminal` that appends a line and then works on until it is killed. */
  appendAndStay(line: string): string {
    const command = `echo $$ > ${this.#pidFile}; echo ${line} >> ${join(this.folder, "log")}; exec sleep 600`;
    return call("terminal", { command });
  }

  /** Whether the command of `appendAndStay` still works: not ended, nor dead and waiting to be collected. */
  get staying(): boolean {
    try {
      const pid = readFileSync(this.#pidFile, "utf8").trim();
      return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
    } catch {
      return false;
    }
  }

  get #pidFile(): string {
    return join(this.folder, "pid");
  }

  /** Resolves when a command has appended this line. */
  async written(line: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = (): void => {
      if (this.lines.includes(line)) resolve();
    };
    const watcher = watch(this.folder, look);
    look();
    await promise;
    watcher.close();
  }

  /** A call of `curl`; paths that begin with `/hold` are never answered. */
  post(path: string): string {
    return call("curl", { url: this.origin + path, method: "POST" });
  }

  /** Resolves with the next visit of `path`. */
  visited(path: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ path, arrived: resolve });
    return promise;
  }

  #visit(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url ?? "";
    this.visits.push(`${request.method} ${path}`);
    for (const { path: wanted, arrived } of this.#waiting) if (wanted === path) arrived();
    if (!path.startsWith("/hold")) response.end("done\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A line of a model script that makes one tool call. */
export const call = (tool: string, args: Readonly<Record<string, unknown>>): string =>
  `!call ${tool} ${JSON.stringify(args)}`;
