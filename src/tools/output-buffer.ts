/**
 * Keeps the beginning and the end of a byte stream of any length in fixed memory: the beginning says what a
 * program did first, the end is where its error stands.
 */
export class OutputBuffer {
  readonly #headSize: number;
  readonly #tailSize: number;
  readonly #head: Buffer[] = [];
  #headLength = 0;
  /** A ring; allocated when the head is full. `#tailTotal` counts every byte that ever entered it. */
  #ring: Buffer | null = null;
  #tailTotal = 0;

  /** `maxBytes` of 2 or more are kept, half from either end. */
  constructor(maxBytes: number) {
    this.#headSize = Math.ceil(maxBytes / 2);
    this.#tailSize = maxBytes - this.#headSize;
  }

  /** Bytes that `text` will leave out. */
  get omitted(): number {
    return Math.max(0, this.#tailTotal - this.#tailSize);
  }

  push(chunk: Buffer): void {
    const room = this.#headSize - this.#headLength;
    if (room > 0) {
      // Copied, because a slice would keep the whole chunk alive.
      const part = Buffer.from(chunk.subarray(0, room));
      this.#head.push(part);
      this.#headLength += part.length;
    }
    if (chunk.length > room) this.#pushTail(chunk.subarray(Math.max(0, room)));
  }

  /** Decoded as UTF-8; a character cut by the limit is dropped, other invalid bytes become U+FFFD. */
  text(): string {
    const head = Buffer.concat(this.#head);
    const tail = this.#tail();
    if (this.omitted === 0) return Buffer.concat([head, tail]).toString("utf8");
    const start = withoutCutEnd(head).toString("utf8");
    const end = withoutCutStart(tail).toString("utf8");
    return `${start}\n[… ${this.omitted} bytes left out …]\n${end}`;
  }

  #pushTail(chunk: Buffer): void {
    const ring = (this.#ring ??= Buffer.allocUnsafe(this.#tailSize));
    const last = chunk.subarray(Math.max(0, chunk.length - ring.length));
    const at = (this.#tailTotal + chunk.length - last.length) % ring.length;
    const untilEnd = last.copy(ring, at);
    last.copy(ring, 0, untilEnd);
    this.#tailTotal += chunk.length;
  }

  #tail(): Buffer {
    const ring = this.#ring;
    if (ring === null) return Buffer.alloc(0);
    if (this.#tailTotal <= ring.length) return ring.subarray(0, this.#tailTotal);
    const oldest = this.#tailTotal % ring.length;
    return Buffer.concat([ring.subarray(oldest), ring.subarray(0, oldest)]);
  }
}

/** Without the bytes of a UTF-8 sequence that the end cuts off. */
export function withoutCutEnd(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (isContinuation(byte)) continue;
    return sequenceLength(byte) > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}

function withoutCutStart(bytes: Buffer): Buffer {
  let skip = 0;
  while (skip < 3 && isContinuation(bytes[skip] ?? 0)) skip++;
  return bytes.subarray(skip);
}

const isContinuation = (byte: number): boolean => (byte & 0xc0) === 0x80;

function sequenceLength(lead: number): number {
  if (lead >= 0xf0) return 4;
  if (lead >= 0xe0) return 3;
  return lead >= 0xc0 ? 2 : 1;
}
