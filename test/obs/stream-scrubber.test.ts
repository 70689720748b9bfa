import { array, assert, constantFrom, nat, property } from "fast-check";
import { describe, expect, test } from "vitest";
import { createScrubber } from "../../src/obs/scrubber.ts";
import { MAX_HELD, type StreamScrubber } from "../../src/obs/stream-scrubber.ts";
import { verifies } from "../support/verifies.ts";
import { ordinaryTexts } from "./corpus/ordinary.ts";
import { keyBlocks, notations, plainValues, plantedSecrets, surroundings } from "./corpus/secrets.ts";
import { hostileText, leaks } from "./support/hostile-text.ts";

const byPattern = createScrubber();
const withKnown = createScrubber({
  literals: ["hunter2word", "word,a1b2", "passwordtoken", "aaaaaa", "aaaaab"],
});

/** What the stream shows after each piece of `text`; the last entry is what `end` gives. */
function shown(stream: StreamScrubber, text: string, sizes: readonly number[]): string[] {
  const pieces: string[] = [];
  let at = 0;
  for (let n = 0; at < text.length; n += 1) {
    const size = 1 + (sizes[n % Math.max(1, sizes.length)] ?? 0);
    pieces.push(stream.push(text.slice(at, at + size)));
    at += size;
  }
  return [...pieces, stream.end()];
}

const sizes = array(constantFrom(0, 0, 1, 2, 7, 30), { minLength: 1, maxLength: 12 });

describe("any cut", () => {
  test("property: joined output equals the scrubbed whole", () => {
    assert(
      property(hostileText, sizes, (text, cut) => {
        for (const scrubber of [byPattern, withKnown]) {
          expect(shown(scrubber.stream(), text, cut).join("")).toBe(scrubber.scrubText(text));
        }
      }),
      { numRuns: 1_500 },
    );
  });

  test("one character at a time over the whole corpus", () => {
    const texts = [
      ...ordinaryTexts,
      ...keyBlocks,
      ...notations.map((text, n) => text.replace("@", () => plainValues[n % plainValues.length] ?? "")),
    ];
    for (const text of texts) {
      expect(shown(byPattern.stream(), text, [0]).join("")).toBe(byPattern.scrubText(text));
    }
  });

  test("a stream can be used again after its end", () => {
    const stream = byPattern.stream();
    expect(shown(stream, "password: hunter2", [3]).join("")).toBe("password: [REDACTED]");
    expect(shown(stream, "hunter2", [3]).join("")).toBe("hunter2");
  });
});

describe("what may leave early", () => {
  verifies("W20", "property: eight characters of a planted secret never leave", () => {
    assert(
      property(
        constantFrom(...plantedSecrets),
        constantFrom(...surroundings),
        sizes,
        (planted, around, cut) => {
          const text = around.replace("@", () => planted.secret);
          const output = shown(byPattern.stream(), text, cut).join("");
          expect(leaks(output, planted.secret.slice(planted.publicPrefix))).toBe(false);
        },
      ),
      { numRuns: 800 },
    );
  });

  verifies("W20", "property: a stream that breaks off inside a secret has shown none of it", () => {
    assert(
      property(constantFrom(...plantedSecrets), nat(), (planted, at) => {
        const stream = byPattern.stream();
        const output = stream.push(`Here it is: ${planted.secret.slice(0, at % planted.secret.length)}`);
        expect(leaks(output, planted.secret.slice(planted.publicPrefix))).toBe(false);
      }),
      { numRuns: 300 },
    );
  });

  test("a secret inside the name of another is held and redacted as well", () => {
    for (const { secret } of plantedSecrets) {
      const output = shown(byPattern.stream(), `KEY-${secret}-token=hunter2-token`, [0]).join("");
      expect(leaks(output, secret)).toBe(false);
    }
  });

  test("prose waits for no more than its current word", () => {
    const text =
      "The quick brown fox jumps over 2 lazy dogs – wie geht's? 日本語 fine.\n\nNext (paragraph): ok! ";
    const stream = byPattern.stream();
    let output = "";
    for (let at = 0; at < text.length; at += 1) {
      output += stream.push(text.charAt(at));
      expect(output).toBe(text.slice(0, at + 1).replace(/[A-Za-z0-9_-]*$/, ""));
    }
  });

  test("after a telling name, prose waits for what follows it", () => {
    const text = "The password is wrong, the token has expired and the key is lost. ";
    const stream = byPattern.stream();
    let output = "";
    for (const character of text) output += stream.push(character);
    expect(output).toBe(text);
    expect(stream.push("My password ")).toBe("My password");
    expect(stream.push("i")).toBe(" ");
  });

  test.each([
    ["password=", "x"],
    ['{"token":"', "y"],
    ["-----BEGIN PRIVATE KEY-----\n", "MIIE"],
    ["Authorization: Bearer ", "z9"],
    ["sk-", "a1"],
    ["eyJ", "hbGci"],
    ["https://user:", "p"],
    ["Cookie: a=", "b"],
    ["word ", "w"],
    ["", "base64/"],
  ])("an endless continuation of %j is decided within the bound", (start, piece) => {
    const stream = byPattern.stream();
    const text = start + piece.repeat(Math.ceil((MAX_HELD + 200) / piece.length));
    const output = stream.push(text);
    const again = stream.push(piece.repeat(1_000)) + stream.end();
    const held = output.includes("[REDACTED]") ? 0 : text.length - output.length;
    expect(held).toBeLessThanOrEqual(MAX_HELD);
    expect(again.includes("[REDACTED]")).toBe(false);
  });
});
