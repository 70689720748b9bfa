import * as fc from "fast-check";
import { expect, test } from "vitest";
import { classifyAddress } from "../../src/tools/address.ts";
import { verifies } from "../support/verifies.ts";

const forbidden = [
  "169.254.169.254", // cloud metadata
  "169.254.170.2",
  "168.63.129.16",
  "100.100.100.200",
  "fd00:ec2::254",
  "fe80::1",
  "fe80::1%eth0",
  "0.0.0.0",
  "0.1.2.3",
  "::",
  "224.0.0.1",
  "ff02::1",
  "255.255.255.255",
  "240.0.0.1",
  "192.0.2.1",
  "198.18.0.1",
  "64:ff9b::7f00:1",
  "64:ff9b:1::1",
  "2002:7f00:1::",
  "2001::1",
  "2001:db8::1",
  "::7f00:1", // IPv4-compatible, long deprecated
  "fec0::1",
  "::ffff:169.254.169.254",
  "example.com",
  "127.1.example",
  "",
];

verifies(["W26"], "special addresses are never reached", () => {
  expect(forbidden.filter((address) => classifyAddress(address) !== "forbidden")).toEqual([]);
});

test.each([
  "127.0.0.1",
  "127.255.0.1",
  "::1",
  "10.1.2.3",
  "172.16.0.1",
  "192.168.1.1",
  "100.64.0.1",
  "fd12::1",
])("%s is private, also inside an IPv6 address", (address) => {
  expect(classifyAddress(address)).toBe("private");
  const inside = address.includes(":") ? address : `::ffff:${address}`;
  expect(classifyAddress(inside)).toBe("private");
});

test.each(["1.1.1.1", "172.15.255.255", "172.32.0.0", "::ffff:1.1.1.1", "2606:4700::1111", "2a00:1450::1"])(
  "%s is public",
  (address) => {
    expect(classifyAddress(address)).toBe("public");
  },
);

verifies(["W26"], "no address of a local network counts as public, in any notation", () => {
  const local = fc.oneof(
    fc.tuple(fc.constantFrom(10, 127, 0), fc.nat(255), fc.nat(255), fc.nat(255)),
    fc.tuple(fc.constant(192), fc.constant(168), fc.nat(255), fc.nat(255)),
    fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), fc.nat(255), fc.nat(255)),
    fc.tuple(fc.constant(169), fc.constant(254), fc.nat(255), fc.nat(255)),
  );
  fc.assert(
    fc.property(local, (octets) => {
      const dotted = octets.join(".");
      const hex = octets.map((octet) => octet.toString(16).padStart(2, "0"));
      const mapped = `::ffff:${hex[0]}${hex[1]}:${hex[2]}${hex[3]}`;
      for (const form of [dotted, `::ffff:${dotted}`, mapped])
        expect(classifyAddress(form)).not.toBe("public");
      // The URL parser turns every other notation (octal, hexadecimal, one number) into the dotted one.
      const number = octets.reduce((sum, octet) => sum * 256 + octet, 0);
      expect(classifyAddress(new URL(`http://${number}/`).hostname)).not.toBe("public");
    }),
  );
});
