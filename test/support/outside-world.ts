/** The world that tools act on: a file and an HTTP server that remember every effect, in a place the daemon does not own. */
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
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

  /** A call of `terminal` that appends a line, says so over HTTP, and then works on until it is killed. */
  appendAndStay(line: string): string {
    const file = join(this.folder, "log");
    const announce = `exec 3<>/dev/tcp/127.0.0.1/${this.port}; printf 'GET /${line} HTTP/1.0\\r\\n\\r\\n' >&3`;
    return call("bash", { script: `echo ${line} >> ${file}; ${announce}; exec sleep 600` });
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
