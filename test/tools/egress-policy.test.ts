import { expect, test } from "vitest";
import { checkTarget, type EgressPolicy, hostOf } from "../../src/tools/egress-policy.ts";

const open: EgressPolicy = { allow: [], deny: [], ports: [80, 443], allowPrivate: false };
const kindOf = (url: string, policy: Partial<EgressPolicy> = {}): string =>
  checkTarget(url, { ...open, ...policy }).kind;

test.each([
  "ftp://example.com/",
  "file:///etc/passwd",
  "gopher://example.com/",
  "data:text/plain,x",
  "not a url",
  "",
  "http://user:secret@example.com/",
  "http://example.com:22/",
  "https://example.com:6379/",
])("%s is refused", (url) => {
  expect(kindOf(url)).toBe("refused");
});

test.each([
  "http://example.com",
  "https://example.com:443/x?y#z",
  "HTTP://EXAMPLE.com:80/",
  "http://[2606:4700::1]/",
])("%s is a target", (url) => {
  expect(kindOf(url)).toBe("target");
});

test.each([
  ["https://example.com/", ["example.com"], true],
  ["https://Example.COM./", ["example.com"], true],
  ["https://a.example.com/", ["example.com"], false],
  ["https://a.b.example.com/", ["*.example.com"], true],
  ["https://example.com/", ["*.example.com"], false],
  ["https://notexample.com/", ["*.example.com"], false],
  ["https://example.com.evil.net/", ["example.com", "*.example.com"], false],
  ["https://bücher.example/", ["bücher.example"], true],
  ["http://[::1]:80/", ["::1"], true],
  ["http://[::1]:8080/", ["[::1]:8080"], true],
  ["https://example.com:8443/", ["example.com:8443"], true],
  ["https://example.com:8443/", ["example.com"], false],
  ["https://example.com/", ["example.com:8443"], false],
] as const)("%s under allow %j: %s", (url, allow, allowed) => {
  expect(kindOf(url, { allow: [...allow] })).toBe(allowed ? "target" : "refused");
});

test("what is denied is denied, allowed or not, dot or not", () => {
  const policy = { allow: ["*.example.com"], deny: ["bad.example.com"] };
  expect(kindOf("https://bad.example.com/", policy)).toBe("refused");
  expect(kindOf("https://BAD.example.com./", policy)).toBe("refused");
  expect(kindOf("https://good.example.com/", policy)).toBe("target");
});

test("a relative location starts at its base", () => {
  const target = checkTarget("../b", open, new URL("https://example.com/x/a"));
  expect(target.kind === "target" && target.url.href).toBe("https://example.com/b");
});

test("an address loses its brackets", () => {
  expect(hostOf(new URL("http://[::1]/"))).toBe("::1");
});
