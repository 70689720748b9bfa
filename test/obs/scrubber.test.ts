import { anything, array, assert, constantFrom, dictionary, jsonValue, property, string } from "fast-check";
import { describe, expect, test } from "vitest";
import { createScrubber, scrubJson, scrubJsonText, scrubText } from "../../src/obs/scrubber.ts";
import { verifies } from "../support/verifies.ts";
import { ordinaryTexts } from "./corpus/ordinary.ts";
import {
  keyBlockBody,
  keyBlocks,
  notations,
  plainValues,
  plantedSecrets,
  surroundings,
} from "./corpus/secrets.ts";
import { hostileText, leaks } from "./support/hostile-text.ts";

/** Of all ordinary texts, how many may be redacted in part. */
const allowedFalseAlarms = 0;

describe("corpus", () => {
  verifies("W20", "no secret of a known family survives, wherever it stands", () => {
    const missed = plantedSecrets.flatMap(({ family, secret, publicPrefix }) =>
      surroundings
        .filter((text) => leaks(scrubText(text.replace("@", () => secret)), secret.slice(publicPrefix)))
        .map((text) => `${family}: ${text}`),
    );
    expect(missed).toEqual([]);
  });

  verifies("W20", "no value survives behind a name that announces it, in any notation", () => {
    const missed = notations.flatMap((notation) =>
      plainValues
        .map((value) => ({ value, text: notation.replace("@", () => value) }))
        .filter(({ value, text }) => leaks(scrubText(text), value)),
    );
    expect(missed).toEqual([]);
  });

  verifies("W20", "private keys are redacted whole, also in JSON and cut off", () => {
    const pieces = keyBlockBody.split("\n").map((line) => line.slice(0, 16));
    expect(keyBlocks.filter((text) => pieces.some((piece) => scrubText(text).includes(piece)))).toEqual([]);
  });

  test("a second pass takes nothing more", () => {
    const texts = plantedSecrets.flatMap(({ secret }) =>
      surroundings.map((text) => text.replace("@", () => secret)),
    );
    const values = plainValues.flatMap((value) => notations.map((text) => text.replace("@", () => value)));
    const once = [...texts, ...values, ...keyBlocks].map((text) => scrubText(text));
    expect(once.map((text) => scrubText(text))).toEqual(once);
  });

  verifies("W20", "ordinary text is left alone", () => {
    const alarms = ordinaryTexts
      .map((text) => scrubText(text))
      .filter((text, n) => text !== ordinaryTexts[n]);
    expect(alarms.slice(allowedFalseAlarms)).toEqual([]);
  });
});

describe("text keeps its shape", () => {
  test.each([
    ['{"api_key":"x","n":1}', '{"api_key":"[REDACTED]","n":1}'],
    ['"{\\"token\\":\\"abc123\\",\\"n\\":1}"', '"{\\"token\\":\\"[REDACTED]\\",\\"n\\":1}"'],
    ['password = "a\\"b" # note', 'password = "[REDACTED]" # note'],
    ["https://u:p@h/x?token=abc&b=1", "https://u:[REDACTED]@h/x?token=[REDACTED]&b=1"],
    ["Authorization: Bearer abc", "Authorization: Bearer [REDACTED]"],
    ["export API_KEY=a,b;c d", "export API_KEY=[REDACTED] d"],
    ["pass: x\npassword: hunter2\nuser: bob", "pass: x\npassword: [REDACTED]\nuser: bob"],
    ["<secret>abc</secret>", "<secret>[REDACTED]</secret>"],
    ["curl -u admin:hunter2 http://h/", "curl -u admin:[REDACTED] http://h/"],
  ])("%s", (text, scrubbed) => {
    expect(scrubText(text)).toBe(scrubbed);
  });

  test("clean text comes back as the same string", () => {
    const text = "The quick brown fox.";
    expect(scrubText(text)).toBe(text);
  });
});

describe("JSON", () => {
  verifies(
    "W20",
    "values under telling keys are redacted, however deep, and strings are scrubbed as text",
    () => {
      const secret = plantedSecrets[0]?.secret ?? "";
      const value = {
        user: "bob",
        nested: [{ apiKey: "x", "x-auth-token": "y", max_tokens: 5, token: 12, pin_password: 123_456 }],
        secrets: ["a1", "b2"],
        password: { value: "x", type: "string" },
        note: `use ${secret}`,
        args: JSON.stringify({ client_secret: "x" }),
        [secret]: true,
        token: null,
        env: "$TOKEN",
      };
      expect(scrubJson(value)).toEqual({
        user: "bob",
        nested: [
          {
            apiKey: "[REDACTED]",
            "x-auth-token": "[REDACTED]",
            max_tokens: 5,
            token: 12,
            pin_password: "[REDACTED]",
          },
        ],
        secrets: ["[REDACTED]", "[REDACTED]"],
        password: { value: "[REDACTED]", type: "string" },
        note: "use [REDACTED]",
        args: '{"client_secret":"[REDACTED]"}',
        "[REDACTED]": true,
        token: null,
        env: "$TOKEN",
      });
    },
  );

  test("a value without secrets comes back itself, and its text byte for byte", () => {
    const value = { a: [1, "two", { three: null }] };
    expect(scrubJson(value)).toBe(value);
    const text = '{ "n": 12345678901234567890, "a": "\\u0041" }';
    expect(scrubJsonText(text)).toBe(text);
  });

  test("text that is no JSON is scrubbed as text", () => {
    expect(scrubJsonText('{"password":"x1", "cut": tr')).toBe('{"password":"[REDACTED]", "cut": tr');
  });

  test("nesting without end is cut, not followed", () => {
    const text = `${"[".repeat(5_000)}"x"${"]".repeat(5_000)}`;
    expect(scrubJsonText(text)).toContain("[REDACTED]");
  });

  test("a key cannot reach the prototype", () => {
    const scrubbed = scrubJson(JSON.parse('{"__proto__":{"password":"x1"},"token":"abc"}'));
    expect(Object.getPrototypeOf(scrubbed)).toBe(Object.prototype);
    expect(JSON.stringify(scrubbed)).toBe('{"__proto__":{"password":"[REDACTED]"},"token":"[REDACTED]"}');
  });

  test("property: no throw on any value, and a second pass finds nothing more", () => {
    assert(
      property(anything({ withNullPrototype: true, maxDepth: 4 }), (value) => {
        scrubJson(value);
      }),
      { numRuns: 100 },
    );
    const keys = constantFrom("password", "token", "api_key", "name", "value", "secrets");
    assert(
      property(dictionary(keys, jsonValue({ maxDepth: 2 })), (value) => {
        const once = scrubJson(value);
        expect(scrubJson(once)).toEqual(once);
      }),
      { numRuns: 200 },
    );
  });
});

describe("known values", () => {
  const known = ['p"w,with punctuation;', "plainvalue", "plainvalue-longer"];
  const scrubber = createScrubber({ literals: [...known, "abc"] });

  verifies("W20", "are redacted wherever they occur, also escaped and encoded", () => {
    for (const value of known) {
      expect(scrubber.scrubText(`x${value}y`)).toBe("x[REDACTED]y");
      expect(scrubber.scrubText(`password=${value}`)).toBe("password=[REDACTED]");
      expect(scrubber.scrubText(JSON.stringify({ a: value }))).toBe('{"a":"[REDACTED]"}');
      expect(scrubber.scrubText(`?q=${encodeURIComponent(value)}`)).toBe("?q=[REDACTED]");
    }
  });

  test("too short to be secrets are ignored", () => {
    expect(scrubber.scrubText("abc")).toBe("abc");
  });

  test("property: no known value survives between any other text", () => {
    assert(
      property(hostileText, constantFrom(...known), hostileText, (before, value, after) => {
        expect(scrubber.scrubText(before + value + after)).not.toContain(value);
      }),
      { numRuns: 300 },
    );
  });
});

describe("hostile input", () => {
  test("property: a planted secret never survives", () => {
    const separated = array(string({ maxLength: 3 }), { maxLength: 2 }).map(
      (parts) => ` ${parts.join(" ")} `,
    );
    assert(
      property(
        separated,
        constantFrom(...plantedSecrets),
        separated,
        (before, { secret, publicPrefix }, after) => {
          expect(leaks(scrubText(before + secret + after), secret.slice(publicPrefix))).toBe(false);
        },
      ),
      { numRuns: 500 },
    );
  });

  test.each([
    ...'password= password:x key= eyJ sk- ghp_a 123456: https://a: M token:" =\\\\" \\ api_key=< <token> Maaaaaaaaaaaaaaaaaaaaaaaaa.'.split(
      " ",
    ),
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----\n",
    "secret : ",
    "curl -u ",
    "Bearer ",
    "token:          ",
  ])("takes linear time on a long run of %j", (piece) => {
    const text = piece.repeat(Math.ceil(150_000 / piece.length));
    expect(scrubText(text).length).toBeLessThanOrEqual(text.length * 3);
  });
});
