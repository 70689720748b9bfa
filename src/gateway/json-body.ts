import { isUtf8 } from "node:buffer";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { BeamclawError } from "../domain/error-catalogue.ts";
import { toError } from "../kernel/errors.ts";
import { invalid } from "./errors.ts";

/** Some editors put it before a file's text; RFC 8259 lets a reader skip it. */
const BYTE_ORDER_MARK = "\ufeff";

/** Every body is read as JSON, whatever its type says: `curl -d` calls it a form. */
export function readJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>("*", { parseAs: "buffer" }, (request, body, done) => {
    if (body.length === 0 || request.is404) {
      done(null, undefined);
      return;
    }
    if (request.headers["idempotency-key"] !== undefined) request.rawBody = body;
    let json: unknown;
    try {
      json = jsonOf(request, body);
    } catch (error) {
      done(toError(error));
      return;
    }
    done(null, json);
  });
}

/** Bytes that are not UTF-8 are refused: read on, they would become other words in a history. */
function jsonOf(request: FastifyRequest, body: Buffer): unknown {
  const encoding = request.headers["content-encoding"] ?? "identity";
  if (encoding !== "identity") throw invalid("content-encoding", "send the body uncompressed");
  if (!isUtf8(body)) throw new BeamclawError("invalid_json", "the body is not UTF-8");
  const text = body.toString("utf8");
  try {
    return JSON.parse(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text);
  } catch {
    throw new BeamclawError("invalid_json", "the body is not valid JSON");
  }
}
