import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { ManualClock } from "../../src/kernel/clock.ts";
import type { EgressOutcome, EgressRequest, Resolve } from "../../src/tools/egress.ts";
import { verifies } from "../support/verifies.ts";
import { egressTo, peer } from "./http-peer.ts";
import { never } from "./workbench.ts";

const get = (url: string, rest: Partial<EgressRequest> = {}): EgressRequest => ({
  url,
  method: "GET",
  headers: {},
  signal: never(),
  ...rest,
});

const mixedAddresses: Resolve = async () => [
  { address: "93.184.215.14", family: 4 },
  { address: "127.0.0.1", family: 4 },
];

const textOf = (outcome: EgressOutcome): string =>
  outcome.kind === "answered" && outcome.body.kind === "text" ? outcome.body.text : JSON.stringify(outcome);

test("method, headers and body arrive; status and text come back", async () => {
  const { origin, port, seen } = await peer((request, response) => {
    request.pipe(response.writeHead(418, { "content-type": "text/plain; charset=utf-8" }));
  });
  const request = get(`${origin}/a?b=1#c`, { method: "PUT", headers: { "X-One": "1" }, body: "ü" });
  const outcome = await egressTo([port]).request(request);
  expect(outcome).toEqual({
    kind: "answered",
    status: 418,
    url: `${origin}/a?b=1#c`,
    body: { kind: "text", text: "ü", truncated: false },
  });
  expect(seen[0]).toMatchObject({ method: "PUT", url: "/a?b=1", headers: { "x-one": "1" } });
});

verifies(
  ["W26"],
  "loopback and local networks are refused unless they were opened, and nothing is sent",
  async () => {
    const { origin, port, seen } = await peer((_, response) => response.end("inside"));
    const egress = egressTo([port], { policy: { allowPrivate: false } });
    const written = [
      origin,
      `http://localhost:${port}`,
      `http://0x7f000001:${port}`,
      `http://[::ffff:127.0.0.1]:${port}`,
    ];
    for (const url of written) {
      expect(await egress.request(get(url))).toMatchObject({ kind: "refused" });
    }
    expect(seen).toEqual([]);
  },
);

verifies(["W26"], "one private address among public ones spoils the name", async () => {
  const mixed = egressTo([80], { resolve: mixedAddresses, policy: { allowPrivate: false } });
  const outcome = await mixed.request(get("http://mixed.test/"));
  expect(outcome).toMatchObject({ kind: "refused", message: expect.stringContaining("127.0.0.1") });
});

verifies(["W26"], "metadata services are refused even where local networks are open", async () => {
  for (const address of ["169.254.169.254", "fd00:ec2::254", "0.0.0.0", "64:ff9b::a9fe:a9fe"]) {
    const resolve = async () => [{ address, family: address.includes(":") ? (6 as const) : (4 as const) }];
    const outcome = await egressTo([80], { resolve }).request(get("http://metadata.test/"));
    expect(outcome).toMatchObject({ kind: "refused" });
  }
});

verifies(
  ["W26"],
  "the name is looked up once, and the connection goes to the address that was checked",
  async () => {
    const { port, seen } = await peer((_, response) => response.end("pinned"));
    const answers = ["127.0.0.1", "169.254.169.254"];
    const asked: string[] = [];
    const egress = egressTo([port], {
      resolve: async (hostname) => {
        asked.push(hostname);
        return [{ address: answers.shift() ?? "", family: 4 }];
      },
    });
    // No resolver on earth knows this name: only the pinned address can have led there.
    expect(textOf(await egress.request(get(`http://rebinding.invalid:${port}/`)))).toBe("pinned");
    expect(asked).toEqual(["rebinding.invalid"]);
    expect(seen[0]?.headers.host).toBe(`rebinding.invalid:${port}`);
    // The second request asks again and believes the new answer.
    expect(await egress.request(get(`http://rebinding.invalid:${port}/`))).toMatchObject({ kind: "refused" });
  },
);

verifies(["W26"], "every redirect is checked like a first request", async () => {
  const places = [
    "http://127.0.0.1:9/",
    "file:///etc/passwd",
    "http://metadata.test/",
    "http://allowed.test:22/",
  ];
  for (const location of places) {
    const { port, seen } = await peer((_, response) => response.writeHead(302, { location }).end());
    const egress = egressTo([], {
      policy: { allow: [`allowed.test:${port}`, "metadata.test:80"] },
      resolve: async (name) => [
        { address: name === "metadata.test" ? "169.254.169.254" : "127.0.0.1", family: 4 },
      ],
    });
    expect(await egress.request(get(`http://allowed.test:${port}/`))).toMatchObject({ kind: "refused" });
    expect(seen).toHaveLength(1);
  }
});

verifies(["W26"], "headers of the caller do not follow to another origin", async () => {
  const second = await peer((_, response) => response.end("there"));
  const first = await peer((request, response) => {
    const location = request.url === "/" ? "/again" : `http://other.test:${second.port}/`;
    response.writeHead(302, { location }).end();
  });
  const headers = { Authorization: "Bearer x", "X-Api-Key": "x", Cookie: "x", Accept: "text/html" };
  const outcome = await egressTo([first.port, second.port]).request(get(`${first.origin}/`, { headers }));
  expect(textOf(outcome)).toBe("there");
  expect(first.seen[1]?.headers).toMatchObject({ authorization: "Bearer x", "x-api-key": "x" });
  const arrived = Object.keys(second.seen[0]?.headers ?? {});
  expect(arrived.toSorted()).toEqual(["accept", "accept-encoding", "connection", "host", "user-agent"]);
  expect(second.seen[0]?.headers.accept).toBe("text/html");
});

test.each([
  [301, "POST", "GET", ""],
  [302, "POST", "GET", ""],
  [303, "PUT", "GET", ""],
  [307, "POST", "POST", "data"],
  [308, "PUT", "PUT", "data"],
])("%d after %s goes on as %s", async (status, method, then, body) => {
  const { origin, port, seen } = await peer((request, response) => {
    if (request.url === "/") response.writeHead(status, { location: "/next" }).end();
    else request.pipe(response);
  });
  const outcome = await egressTo([port]).request(get(`${origin}/`, { method, body: "data" }));
  expect(seen[1]?.method).toBe(then);
  expect(textOf(outcome)).toBe(body);
});

test("a request with an effect does not follow to an origin that nobody approved", async () => {
  const second = await peer((_, response) => response.end());
  const first = await peer((_, response) =>
    response.writeHead(307, { location: `http://other.test:${second.port}/` }).end(),
  );
  const outcome = await egressTo([first.port, second.port]).request(
    get(first.origin, { method: "POST", body: "data" }),
  );
  expect(outcome).toMatchObject({ kind: "refused", message: expect.stringContaining("other.test") });
  expect(second.seen).toEqual([]);
});

test("redirects in a circle end", async () => {
  const { origin, port, seen } = await peer((_, response) =>
    response.writeHead(302, { location: "/" }).end(),
  );
  expect(await egressTo([port]).request(get(origin))).toMatchObject({ kind: "failed" });
  expect(seen).toHaveLength(6);
});

verifies(["W26"], "a long body is cut, a body without end is left", async () => {
  const { origin, port } = await peer((_, response) => {
    const more = (): void => {
      while (!response.destroyed && response.write("é".repeat(10_000)));
      response.once("drain", more);
    };
    more();
  });
  const outcome = await egressTo([port], { maxBodyBytes: 101 }).request(get(origin));
  expect(outcome).toMatchObject({ body: { kind: "text", text: "é".repeat(50), truncated: true } });
});

verifies(["W26"], "a small body that unpacks to a large one costs no more than the limit", async () => {
  const bomb = gzipSync(Buffer.alloc(50_000_000, "x"), { level: 9 });
  const { origin, port } = await peer((_, response) => {
    response.writeHead(200, { "content-encoding": "gzip" }).end(bomb);
  });
  const outcome = await egressTo([port]).request(get(origin));
  expect(outcome).toMatchObject({ body: { kind: "text", text: "x".repeat(1000), truncated: true } });
});

test.each([
  ["gzip", gzipSync("packed ü")],
  ["deflate", deflateSync("packed ü")],
  ["br", brotliCompressSync("packed ü")],
  ["identity", Buffer.from("packed ü")],
])("%s is unpacked", async (encoding, bytes) => {
  const { origin, port } = await peer((_, response) => {
    response.writeHead(200, { "content-encoding": encoding }).end(bytes);
  });
  expect(textOf(await egressTo([port]).request(get(origin)))).toBe("packed ü");
});

test.each([
  ["gzip, gzip", gzipSync(gzipSync("x"))],
  ["gzip", Buffer.from("no gzip at all")],
])("an encoding that does not fit (%s) is a failure, not a crash", async (encoding, bytes) => {
  const { origin, port } = await peer((_, response) => {
    response.writeHead(200, { "content-encoding": encoding }).end(bytes);
  });
  expect(await egressTo([port]).request(get(origin))).toMatchObject({ kind: "failed" });
});

test("other charsets are decoded, binary content is named and not shown", async () => {
  const bodies: Record<string, [string, Buffer]> = {
    "/latin": ["text/plain; charset=iso-8859-1", Buffer.from([0xfc])],
    "/unknown": ["text/plain; charset=klingon", Buffer.from("ok")],
    "/image": ["image/png", Buffer.from("x")],
    "/nul": ["text/plain", Buffer.from("a\0b")],
  };
  const { origin, port } = await peer((request, response) => {
    const [type, bytes] = bodies[request.url ?? ""] ?? ["", Buffer.alloc(0)];
    response.writeHead(200, { "content-type": type }).end(bytes);
  });
  const ask = async (path: string) => egressTo([port]).request(get(origin + path));
  expect(textOf(await ask("/latin"))).toBe("ü");
  expect(textOf(await ask("/unknown"))).toBe("ok");
  expect(await ask("/image")).toMatchObject({ body: { kind: "binary", contentType: "image/png" } });
  expect(await ask("/nul")).toMatchObject({ body: { kind: "binary" } });
});

test.each(["Host", "content-length", "Transfer-Encoding", "Proxy-Authorization", "connection"])(
  "the header %s is not the caller's to set",
  async (name) => {
    const outcome = await egressTo([80]).request(get("http://example.test/", { headers: { [name]: "x" } }));
    expect(outcome).toMatchObject({ kind: "refused" });
  },
);

test("a header that would break the protocol is a failure", async () => {
  const { origin, port, seen } = await peer((_, response) => response.end());
  const headers = { "x-a": "1\r\nx-b: 2" };
  expect(await egressTo([port]).request(get(origin, { headers }))).toMatchObject({ kind: "failed" });
  expect(seen).toEqual([]);
});

test("silence ends at the time limit, in the answer and before it", async () => {
  for (const path of ["/silent", "/slow"]) {
    const clock = new ManualClock();
    const { origin, port } = await peer((request, response) => {
      if (request.url === "/slow") response.write("a");
      void clock.advance(20_000);
    });
    const outcome = await egressTo([port], { clock }).request(get(origin + path));
    expect(outcome).toMatchObject({ kind: "failed", message: "no complete answer within 20 s" });
    expect(clock.pending).toBe(0);
  }
});

test("cancelling ends the look-up, the request and the answer", async () => {
  const controller = new AbortController();
  const { origin, port } = await peer((_, response) => {
    response.write("a");
    controller.abort();
  });
  expect(await egressTo([port]).request(get(origin, { signal: controller.signal }))).toEqual({
    kind: "cancelled",
  });
  const looking = new AbortController();
  const resolve = () => {
    queueMicrotask(() => looking.abort());
    return new Promise<never>(() => {});
  };
  const request = get("http://slow.test/", { signal: looking.signal });
  expect(await egressTo([80], { resolve }).request(request)).toEqual({ kind: "cancelled" });
});

test("a name without address, a closed port and a broken answer are failures", async () => {
  const nobody = egressTo([80], { resolve: async () => [] });
  expect(await nobody.request(get("http://nobody.test/"))).toMatchObject({ kind: "failed" });
  const { origin, port } = await peer((request) => request.socket.end("no http\r\n\r\n"));
  expect(await egressTo([port]).request(get(origin))).toMatchObject({ kind: "failed" });
  expect(await egressTo([1]).request(get("http://127.0.0.1:1/"))).toMatchObject({
    kind: "failed",
    message: expect.stringContaining("ECONNREFUSED"),
  });
});
