import type { Invocation } from "./invocation.ts";
import { arrayOf, dataOf, objectOf, textOf } from "./json-fields.ts";

/** Tokens live in the daemon's database, so it has to run. */
export async function create(invocation: Invocation): Promise<number> {
  const scopes = invocation.texts("scope");
  const agent = invocation.text("agent");
  const days = invocation.number("expires", 1, 36_500);
  const created = await invocation.client.post("/admin/tokens", {
    name: invocation.operand(0),
    scopes: scopes.length > 0 ? scopes : ["chat"],
    ...(agent !== null && { agent }),
    ...(days !== null && { expires_days: days }),
  });
  const { secret, expires_at: expires } = objectOf(created);
  invocation.present(created, () => {
    invocation.terminal.line(textOf(secret));
    const end = typeof expires === "string" ? `, valid until ${expires}` : "";
    invocation.terminal.note(`This is the only time the secret is shown${end}.`);
  });
  return 0;
}

export async function list(invocation: Invocation): Promise<number> {
  const tokens = dataOf(await invocation.client.get("/admin/tokens"));
  invocation.present(tokens, () => {
    invocation.terminal.table(["name", "scopes", "agent", "created", "expires", "revoked"], tokens.map(row));
  });
  return 0;
}

function row(token: unknown): readonly string[] {
  const { name, scopes, agent, ...times } = objectOf(token);
  const days = ["created_at", "expires_at", "revoked_at"].map(
    (key) => textOf(times[key]).slice(0, 10) || "-",
  );
  return [textOf(name), arrayOf(scopes).map(textOf).join(","), textOf(agent) || "any", ...days];
}

export async function revoke(invocation: Invocation): Promise<number> {
  const name = invocation.operand(0);
  await invocation.client.delete(`/admin/tokens/${encodeURIComponent(name)}`);
  invocation.terminal.line(`revoked ${name}`);
  return 0;
}
