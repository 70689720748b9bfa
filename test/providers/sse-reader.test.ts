import * as fc from "fast-check";
import { expect, test } from "vitest";
import { SseReader, type ServerSentEvent } from "../../src/providers/sse-reader.ts";

function read(chunks: readonly Uint8Array[], maxChars = 1_000): { events: ServerSentEvent[]; fits: boolean } {
  const events: ServerSentEvent[] = [];
  const reader = new SseReader((event) => events.push(event), maxChars);
  const fits = chunks.map((chunk) => reader.feed(chunk)).every(Boolean);
  return { events, fits: reader.end() && fits };
}

test("any cutting of the bytes gives the same events", () => {
  const lines = fc.constantFrom(
    "data: größe 😀",
    "data:x",
    "event: ping",
    ": comment",
    "",
    "id: 7",
    "retry: 5",
    "junk",
  );
  const stream = fc.tuple(fc.array(lines, { maxLength: 20 }), fc.constantFrom("\n", "\r\n", "\r"));
  fc.assert(
    fc.property(stream, fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 60 }), ([all, end], sizes) => {
      const bytes = Buffer.from(all.map((line) => line + end).join(""));
      const chunks: Uint8Array[] = [];
      let at = 0;
      for (const size of sizes) {
        chunks.push(bytes.subarray(at, at + size));
        at += size;
      }
      chunks.push(bytes.subarray(at));
      expect(read(chunks)).toEqual(read([bytes]));
    }),
  );
});

test("an event whose blank line is missing counts at the end", () => {
  expect(read([Buffer.from("event: e\ndata: 1")]).events).toEqual([{ type: "e", data: "1" }]);
});

test("a line beyond the limit stops the reader", () => {
  const { events, fits } = read([
    Buffer.from("data: ok\n\ndata: "),
    Buffer.alloc(2_000, "x"),
    Buffer.from("\n\n"),
  ]);
  expect(fits).toBe(false);
  expect(events).toEqual([{ type: "", data: "ok" }]);
});
