import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ResponseReader } from "../../bench/response-reader.ts";

describe("ResponseReader", () => {
  const pieces = fc.array(fc.string({ minLength: 1, unit: "binary-ascii" }), { maxLength: 8 });
  const cuts = fc.array(fc.nat(400), { maxLength: 12 });

  test("reads a chunked body whatever the cuts", () => {
    fc.assert(
      fc.property(pieces, cuts, (texts, at) => {
        const chunks = texts.map((text) => `${text.length.toString(16)}\r\n${text}\r\n`).join("");
        const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        const reader = read(`${head}${chunks}0\r\n\r\n`, at);
        expect(reader).toMatchObject({ done: true, status: 200, text: texts.join("") });
      }),
    );
  });

  test("reads a body of known length whatever the cuts", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary-ascii" }), cuts, (text, at) => {
        const reader = read(`HTTP/1.1 503 No\r\ncontent-length: ${text.length}\r\n\r\n${text}`, at);
        expect(reader).toMatchObject({ done: true, status: 503, text });
      }),
    );
  });

  test("is not done before the last byte", () => {
    const whole = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
    for (let end = 1; end < whole.length; end += 1) {
      expect(read(whole.slice(0, end), []).done).toBe(false);
    }
  });

  test.each([
    ["not an HTTP/1.1 response", "HELLO\r\n\r\n"],
    ["response without a length", "HTTP/1.1 200 OK\r\n\r\n"],
    ["malformed chunk size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"],
  ])("refuses: %s", (message, bytes) => {
    expect(() => read(bytes, [])).toThrow(message);
  });
});

function read(bytes: string, cuts: readonly number[]): ResponseReader {
  const reader = new ResponseReader();
  const ends = [...new Set([...cuts.filter((cut) => cut < bytes.length), bytes.length])];
  let begin = 0;
  for (const end of ends.toSorted((a, b) => a - b)) {
    reader.push(Buffer.from(bytes.slice(begin, end), "latin1"));
    begin = end;
  }
  return reader;
}
