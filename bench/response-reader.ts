/**
 * Reads one HTTP/1.1 response off a raw socket, in pieces cut anywhere. Knows what a streamed turn needs: status
 * line, `Transfer-Encoding: chunked` or `Content-Length` (RFC 9112 §6, §7.1), and nothing else. The load client
 * must stay far cheaper than the gateway that it measures, which a general HTTP client is not.
 */

const HEAD_END = "\r\n\r\n";

/** A body or head beyond this is a fault of the gateway, not a long answer. Bytes. */
const LIMIT = 4 * 1024 * 1024;

type State = "head" | "size" | "data" | "data_end" | "sized" | "trailer" | "done";

export class ResponseReader {
  status = 0;
  /** The payload so far, one char per byte (latin1): searching it needs no decoding. */
  text = "";
  #state: State = "head";
  #pending = "";
  #left = 0;

  get done(): boolean {
    return this.#state === "done";
  }

  /** Takes the next bytes of the connection. Throws on a malformed or oversized response. */
  push(bytes: Buffer): void {
    this.#pending += bytes.toString("latin1");
    if (this.#pending.length + this.text.length > LIMIT) throw new Error("response larger than 4 MiB");
    while (this.#step());
  }

  /** Consumes one element; false when more bytes are needed. */
  #step(): boolean {
    switch (this.#state) {
      case "head":
        return this.#head();
      case "size":
        return this.#chunkSize();
      case "data":
        return this.#payload("data_end");
      case "data_end":
        return this.#dataEnd();
      case "sized":
        return this.#payload("done");
      case "trailer":
        return this.#trailer();
      case "done":
        break;
    }
    return false;
  }

  #head(): boolean {
    const end = this.#pending.indexOf(HEAD_END);
    if (end < 0) return false;
    const head = this.#pending.slice(0, end + 2).toLowerCase();
    this.#pending = this.#pending.slice(end + HEAD_END.length);
    const status = /^http\/1\.1 (\d{3})/.exec(head)?.[1];
    if (status === undefined) throw new Error("not an HTTP/1.1 response");
    this.status = Number(status);
    if (head.includes("\r\ntransfer-encoding: chunked\r\n")) this.#state = "size";
    else this.#sized(/\r\ncontent-length: (\d+)\r\n/.exec(head)?.[1]);
    return true;
  }

  #sized(length: string | undefined): void {
    if (length === undefined) throw new Error("response without a length");
    this.#left = Number(length);
    this.#state = this.#left === 0 ? "done" : "sized";
  }

  #chunkSize(): boolean {
    const end = this.#pending.indexOf("\r\n");
    if (end < 0) return false;
    const line = this.#pending.slice(0, end);
    if (!/^[0-9a-f]+/i.test(line)) throw new Error("malformed chunk size");
    this.#left = Number.parseInt(line, 16);
    this.#pending = this.#pending.slice(end + 2);
    this.#state = this.#left === 0 ? "trailer" : "data";
    return true;
  }

  #payload(next: State): boolean {
    const take = this.#pending.slice(0, this.#left);
    if (take.length === 0) return false;
    this.text += take;
    this.#left -= take.length;
    this.#pending = this.#pending.slice(take.length);
    if (this.#left === 0) this.#state = next;
    return true;
  }

  /** A chunk's closing CRLF may arrive later than its data. */
  #dataEnd(): boolean {
    if (this.#pending.length < 2) return false;
    this.#pending = this.#pending.slice(2);
    this.#state = "size";
    return true;
  }

  #trailer(): boolean {
    const end = this.#pending.indexOf("\r\n");
    if (end < 0) return false;
    const last = end === 0;
    this.#pending = this.#pending.slice(end + 2);
    if (last) this.#state = "done";
    return true;
  }
}
