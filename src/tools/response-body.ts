/** Reads an HTTP body of unknown size, encoding and kind into bounded text. */
import type { IncomingHttpHeaders } from "node:http";
import { pipeline, type Readable } from "node:stream";
import { withoutCutEnd } from "./output-buffer.ts";

export type Body =
  | { readonly kind: "text"; readonly text: string; readonly truncated: boolean }
  | { readonly kind: "binary"; readonly contentType: string };

const BINARY_TYPE = /^(image|audio|video|font)\/|^application\/(octet-stream|pdf|zip|gzip|wasm|x-tar)\b/i;
/** Bytes that are searched for a NUL, which no text has. */
const SNIFF_BYTES = 8_192;

/**
 * Keeps `maxBytes` of the decoded body and closes the stream when it has them, so that neither a long body nor a
 * small one that unpacks to a large one costs more. Rejects when the stream fails or cannot be unpacked.
 */
export async function readBody(
  stream: Readable,
  headers: IncomingHttpHeaders,
  maxBytes: number,
): Promise<Body> {
  const contentType = headers["content-type"] ?? "";
  const { bytes, truncated } = await readAtMost(unpacked(stream, headers["content-encoding"]), maxBytes);
  const binary = BINARY_TYPE.test(contentType) || bytes.subarray(0, SNIFF_BYTES).includes(0);
  if (binary && bytes.length > 0) return { kind: "binary", contentType: contentType.slice(0, 100) };
  return { kind: "text", text: decode(truncated ? withoutCutEnd(bytes) : bytes, contentType), truncated };
}

/** One encoding at most: several on top of each other are a way to hide a bomb. */
function unpacked(stream: Readable, encoding: string | undefined): Readable {
  const decoder = decoderOf(encoding);
  if (decoder === null) return stream;
  pipeline(stream, decoder, () => {}); // whoever reads the decoder meets the error
  return decoder;
}

/** Loaded with the first compressed answer; not by `await import`, for the stream needs its listeners at once. */
const zlib = () => process.getBuiltinModule("node:zlib");

function decoderOf(encoding: string | undefined) {
  switch (encoding?.trim().toLowerCase()) {
    case undefined:
    case "":
    case "identity":
      return null;
    case "gzip":
    case "x-gzip":
      return zlib().createGunzip();
    case "deflate":
      return zlib().createInflate();
    case "br":
      return zlib().createBrotliDecompress();
    default:
      throw new Error("the server used a content encoding that was not asked for");
  }
}

async function readAtMost(
  stream: Readable,
  maxBytes: number,
): Promise<{ readonly bytes: Buffer; readonly truncated: boolean }> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > maxBytes) break; // leaving the loop destroys the stream
  }
  return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), truncated: length > maxBytes };
}

function decode(bytes: Buffer, contentType: string): string {
  const charset = /charset\s*=\s*"?([\w-]+)/i.exec(contentType)?.[1] ?? "utf-8";
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return bytes.toString("utf8"); // a charset that nobody knows
  }
}
