import { createRequire } from "node:module";
import { describe, expect, test } from "vitest";
import { chat, type Harness, openGateway } from "./harness.ts";

interface Document {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { readonly schemas: Record<string, object> };
}
interface Operation {
  readonly security?: readonly unknown[];
  readonly responses: Record<string, { readonly content?: Record<string, { readonly schema: object }> }>;
}

const documentOf = async (gateway: Harness): Promise<Document> =>
  (await gateway.inject({ url: "/openapi.json" })).json<Document>();

describe("the OpenAPI document", () => {
  test("describes every route, and no other", async () => {
    const gateway = await openGateway();
    const { paths, openapi, info } = await documentOf(gateway);
    const described = Object.entries(paths).flatMap(([path, operations]) =>
      Object.keys(operations).map(
        (method) => `${method.toUpperCase()} ${path.replace("{model}", "*").replace(/\{(\w+)\}/g, ":$1")}`,
      ),
    );
    const served = gateway.routes.map(({ method, url }) => `${method} ${url}`);
    expect(described.toSorted()).toEqual(served.toSorted());
    expect(served.length).toBeGreaterThan(0);
    expect([openapi, info.version]).toEqual(["3.1.0", "1.2.3"]);
  });

  test("says which routes are open", async () => {
    const { paths } = await documentOf(await openGateway());
    const open = Object.entries(paths).filter(([, path]) => path["get"]?.security?.length === 0);
    expect(open.map(([path]) => path)).toEqual(["/health", "/ready", "/openapi.json"]);
  });

  test("its schemas hold for real answers", async () => {
    const gateway = await openGateway();
    const document = await documentOf(gateway);
    const complaints = validator(document);
    const sent = await converse(gateway);
    const answers = [
      ["/health", "/health"],
      ["/ready", "/ready"],
      ["/v1/models", "/v1/models"],
      ["/v1/models/beamclaw", "/v1/models/{model}"],
      ["/v1/sessions", "/v1/sessions"],
      [`/v1/sessions/${sent.session}`, "/v1/sessions/{id}"],
      [`/v1/sessions/${sent.session}/messages`, "/v1/sessions/{id}/messages"],
      ["/v1/runs", "/v1/runs"],
      [`/v1/runs/${sent.run}`, "/v1/runs/{id}"],
      ["/v1/approvals", "/v1/approvals"],
      [`/v1/approvals/${sent.approval}`, "/v1/approvals/{id}"],
      ["/v1/runs/none", "/v1/runs/{id}"],
      ["/v1/runs?limit=0", "/v1/runs"],
    ] as const;
    for (const [url, path] of answers) {
      const response = await gateway.inject({ url });
      const schema =
        document.paths[path]?.["get"]?.responses[response.statusCode]?.content?.["application/json"];
      expect([url, schema === undefined]).toEqual([url, false]);
      expect([url, complaints(schema?.schema ?? {}, response.json())]).toEqual([url, []]);
    }
    expect(complaints({ $ref: "#/components/schemas/ChatRequest" }, chat("hi").payload)).toEqual([]);
    expect(complaints({ $ref: "#/components/schemas/ChatRequest" }, { messages: 5 })).not.toEqual([]);
    expect(complaints({ $ref: "#/components/schemas/ChatCompletion" }, sent.body)).toEqual([]);
  });
});

async function converse(gateway: Harness) {
  gateway.conversations.script = (run) => void run.ask();
  await gateway.inject(chat("run it", { session_id: "a" }));
  gateway.conversations.script = (run) => run.answer("Hello");
  const answer = await gateway.inject(chat("hi", { session_id: "b" }));
  const [approval] = gateway.store.savedApprovals.keys();
  return { session: "b", run: String(answer.headers["x-run-id"]), approval, body: answer.json<unknown>() };
}

interface Ajv {
  addSchema(schema: object, key: string): void;
  addFormat(name: string, format: boolean): void;
  compile(schema: object): { (value: unknown): boolean; errors?: readonly { message?: string }[] | null };
}

/** Complaints about a value by one of the document's schemas. */
function validator(document: Document): (schema: object, value: unknown) => readonly string[] {
  const { default: Ajv2020 } = createRequire(import.meta.url)("ajv/dist/2020.js") as {
    default: new (options: object) => Ajv;
  };
  const ajv = new Ajv2020({ strict: false, logger: false });
  ajv.addFormat("date-time", true);
  return (schema, value) => {
    const check = ajv.compile({ ...schema, components: document.components });
    return check(value) ? [] : (check.errors ?? []).map(({ message }) => message ?? "is invalid");
  };
}
