import * as fc from "fast-check";
import { expect, test } from "vitest";
import { OutputBuffer } from "../../src/tools/output-buffer.ts";

const bufferOf = (maxBytes: number, chunks: readonly Buffer[]): OutputBuffer => {
  const buffer = new OutputBuffer(maxBytes);
  for (const chunk of chunks) buffer.push(chunk);
  return buffer;
};

test("however the bytes arrive, both ends are kept and the gap is counted", () => {
  const chunks = fc.array(fc.stringMatching(/^[a-z]{0,9}$/), { maxLength: 20 });
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 40 }), chunks, (max, parts) => {
      const whole = parts.join("");
      const buffer = bufferOf(
        max,
        parts.map((part) => Buffer.from(part)),
      );
      const head = whole.slice(0, Math.ceil(max / 2));
      const tail = whole.slice(whole.length - Math.floor(max / 2));
      const missing = whole.length - max;
      expect(buffer.omitted).toBe(Math.max(0, missing));
      expect(buffer.text()).toBe(missing <= 0 ? whole : `${head}\n[… ${missing} bytes left out …]\n${tail}`);
    }),
  );
});

test("a character is never cut, in whatever pieces it came", () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 30 }), fc.string({ unit: "grapheme" }), (max, text) => {
      const bytes = Buffer.from(text);
      const buffer = bufferOf(
        max,
        [...bytes].map((byte) => Buffer.from([byte])),
      );
      const [start = "", end = ""] = buffer.text().split(/\n\[… \d+ bytes left out …\]\n/);
      expect([text.slice(0, start.length), text.slice(text.length - end.length)]).toEqual([start, end]);
      expect(start.length + end.length < text.length).toBe(bytes.length > max);
    }),
  );
});

test("invalid bytes become replacement characters", () => {
  expect(bufferOf(10, [Buffer.from([0x61, 0xff, 0x62])]).text()).toBe("a\ufffdb");
});
