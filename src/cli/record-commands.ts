import type { Decision } from "../domain/approval.ts";
import { confirm } from "./confirm.ts";
import type { Invocation } from "./invocation.ts";
import { arrayOf, dataOf, objectOf, textOf } from "./json-fields.ts";

/** Sessions, runs and approvals: what the daemon keeps, read and steered over its HTTP routes. */

const DEFAULT_LIMIT = 50;

export async function listSessions(invocation: Invocation): Promise<number> {
  return listOf(invocation, "/v1/sessions", ["id", "user", "agent", "message_count", "updated_at"]);
}

export async function listRuns(invocation: Invocation): Promise<number> {
  const state = invocation.text("state");
  const query = state === null ? "" : `?state=${encodeURIComponent(state)}`;
  return listOf(invocation, `/v1/runs${query}`, ["id", "state", "agent", "session_id", "created_at"]);
}

export async function listApprovals(invocation: Invocation): Promise<number> {
  const query = invocation.flag("all") ? "" : "?state=pending";
  return listOf(invocation, `/v1/approvals${query}`, ["id", "state", "tool", "arguments", "expires_at"]);
}

async function listOf(invocation: Invocation, path: string, columns: readonly string[]): Promise<number> {
  const found = await invocation.client.list(path, invocation.number("limit", 1, 100_000) ?? DEFAULT_LIMIT);
  invocation.present(found, () => {
    const headings = columns.map((column) => column.replace(/_(at|id|count)$/, ""));
    invocation.terminal.table(
      headings,
      found.map((record) => columns.map((column) => cell(record, column))),
    );
  });
  return 0;
}

/** One line of a table, so no line breaks and no more than a glance can take. */
function cell(record: unknown, column: string): string {
  const text = textOf(objectOf(record)[column]).replaceAll(/\s+/g, " ") || "-";
  if (column.endsWith("_at")) return text.slice(0, 19);
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

export async function showSession(invocation: Invocation): Promise<number> {
  const path = `/v1/sessions/${encodeURIComponent(invocation.operand(0))}`;
  const session = await invocation.client.get(path);
  const limit = invocation.number("limit", 1, 100_000) ?? DEFAULT_LIMIT;
  // Messages are numbered from 0 without a gap, and the cursor is the number before the first one wanted.
  const before = Math.max(-1, Number(objectOf(session)["message_count"]) - limit - 1);
  const messages = await invocation.client.list(`${path}/messages`, limit, String(before));
  invocation.present({ ...objectOf(session), messages }, () => {
    fields(invocation, session);
    for (const message of messages) {
      invocation.terminal.line();
      invocation.terminal.line(`[${textOf(objectOf(message)["role"])}] ${spoken(message)}`);
    }
  });
  return 0;
}

/** What a message says, for people: text, and the names of what it calls. */
function spoken(message: unknown): string {
  const { content, tool_calls: calls } = objectOf(message);
  const parts = Array.isArray(content)
    ? content.map((part) => textOf(objectOf(part)["text"]) || "(image)")
    : [textOf(content)];
  return [...parts.filter((part) => part !== ""), ...arrayOf(calls).map(callLine)].join("\n");
}

function callLine(call: unknown): string {
  const { name, arguments: given } = objectOf(objectOf(call)["function"]);
  return `-> ${textOf(name)} ${textOf(given)}`;
}

/** One JSON object a line, as many as there are; pages are written as they come. */
export async function exportSession(invocation: Invocation): Promise<number> {
  const path = `/v1/sessions/${encodeURIComponent(invocation.operand(0))}/messages?limit=200`;
  let next: string | null = path;
  while (next !== null) {
    const page: unknown = await invocation.client.get(next);
    const lines = dataOf(page).map((message) => `${JSON.stringify(message)}\n`);
    await invocation.terminal.put(lines.join(""));
    const cursor: unknown = objectOf(page)["next_cursor"];
    next = typeof cursor === "string" ? `${path}&cursor=${encodeURIComponent(cursor)}` : null;
  }
  return 0;
}

export async function deleteSession(invocation: Invocation): Promise<number> {
  const id = invocation.operand(0);
  if (!(await confirm(invocation, `Delete the session ${id} with its history?`))) return 1;
  await invocation.client.delete(`/v1/sessions/${encodeURIComponent(id)}`);
  invocation.terminal.line(`deleted ${id}`);
  return 0;
}

export async function showRun(invocation: Invocation): Promise<number> {
  const run = await invocation.client.get(`/v1/runs/${encodeURIComponent(invocation.operand(0))}`);
  invocation.present(run, () => {
    fields(invocation, run);
  });
  return 0;
}

/** `key: value` lines; nested values as JSON. */
function fields(invocation: Invocation, record: unknown): void {
  for (const [key, value] of Object.entries(objectOf(record))) {
    invocation.terminal.line(`${key}: ${textOf(value) || "-"}`);
  }
}

export async function cancelRun(invocation: Invocation): Promise<number> {
  const id = invocation.operand(0);
  await invocation.client.post(`/v1/runs/${encodeURIComponent(id)}/cancel`, {});
  invocation.terminal.line(`cancelled ${id}`);
  return 0;
}

const decided: Readonly<Record<Decision, string>> = {
  approve: "approved",
  deny: "denied",
  always: "approved, now and for the like in this session",
};

export async function decide(invocation: Invocation, decision: Decision): Promise<number> {
  const id = invocation.operand(0);
  await invocation.client.post(`/v1/approvals/${encodeURIComponent(id)}`, { decision });
  invocation.terminal.line(`${decided[decision]}: ${id}`);
  return 0;
}
