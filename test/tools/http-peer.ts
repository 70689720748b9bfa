import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { Egress, type EgressOptions } from "../../src/tools/egress.ts";
import type { EgressPolicy } from "../../src/tools/egress-policy.ts";
import { clock } from "./workbench.ts";

export interface Peer {
  readonly port: number;
  readonly origin: string;
  /** What arrived: method, path, headers, in order. */
  readonly seen: IncomingMessage[];
}

/** A real HTTP server on loopback that ends with the test. */
export async function peer(answer: RequestListener): Promise<Peer> {
  const seen: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    seen.push(request);
    answer(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  const { port } = server.address() as AddressInfo;
  return { port, origin: `http://127.0.0.1:${port}`, seen };
}

/** A client that may reach loopback on the given ports; every name without a rule of its own leads there. */
export function egressTo(
  ports: readonly number[],
  rest: Partial<Omit<EgressOptions, "policy">> & { readonly policy?: Partial<EgressPolicy> } = {},
): Egress {
  return new Egress({
    clock,
    timeoutMs: 20_000,
    maxBodyBytes: 1_000,
    resolve: async () => [{ address: "127.0.0.1", family: 4 }],
    ...rest,
    policy: { allow: [], deny: [], ports, allowPrivate: true, ...rest.policy },
  });
}
