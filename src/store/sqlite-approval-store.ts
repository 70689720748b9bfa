import type Database from "better-sqlite3";
import type { Approval, Grant } from "../domain/approval.ts";
import type { ApprovalId, SessionId } from "../domain/ids.ts";
import type { ApprovalFilter, ApprovalStore, AskApproval, Decided, Fenced, Paged } from "./ports.ts";
import type { Answer } from "./sqlite/approval-commands.ts";
import { approvalColumns, approvalTables } from "./sqlite/approval-row.ts";
import { isOneOf, PageQuery } from "./sqlite/page.ts";
import { guarded, parameter } from "./sqlite/statement.ts";
import type { Writer } from "./writer.ts";

interface ApprovalRow extends Approval {
  readonly key: number;
}

const selectApprovals = `SELECT ${approvalColumns}, a.key FROM ${approvalTables}`;

/** Questions; what is pending is read through partial indexes, however many were ever asked. */
export class SqliteApprovalStore implements ApprovalStore {
  readonly #db: Database.Database;
  readonly #writer: Writer;
  readonly #get: Database.Statement<[string], ApprovalRow>;
  readonly #pendingOf: Database.Statement<[string], ApprovalRow>;
  readonly #due: Database.Statement<[number], ApprovalRow>;
  readonly #grants: Database.Statement<[string], Grant>;

  constructor(db: Database.Database, writer: Writer) {
    this.#db = db;
    this.#writer = writer;
    this.#get = db.prepare(`${selectApprovals} WHERE a.id = ${parameter}`);
    this.#pendingOf = db.prepare(`
      ${selectApprovals} WHERE a.state = 'pending' AND a.session = (SELECT key FROM sessions WHERE id = ${parameter})`);
    this.#due = db.prepare(`
      ${selectApprovals} WHERE a.state = 'pending' ORDER BY a.expires_at, a.key LIMIT ?`);
    this.#grants = db.prepare(`
      SELECT g.tool, g.pattern FROM grants g JOIN sessions s ON s.key = g.session WHERE s.id = ${parameter}
      ORDER BY g.tool, g.pattern`);
  }

  ask(question: AskApproval): Promise<{ readonly kind: "asked" } | Fenced> {
    return this.#writer.execute("ask", question);
  }

  decide(answer: Answer): Promise<Decided> {
    return this.#writer.execute("decide", answer);
  }

  async get(id: ApprovalId): Promise<Approval | null> {
    return approvalOrNull(guarded(() => this.#get.get(id)));
  }

  async pendingOf(sessionId: SessionId): Promise<Approval | null> {
    return approvalOrNull(guarded(() => this.#pendingOf.get(sessionId)));
  }

  async list(filter: ApprovalFilter): Promise<Paged<Approval>> {
    const { principal, sessionId, states } = filter;
    const query = new PageQuery(filter.page, "a.key");
    if (principal !== undefined) query.where("r.principal = ?", principal);
    if (sessionId !== undefined) query.where("s.id = ?", sessionId);
    if (states !== undefined) query.where(isOneOf("a.state", states), ...states);
    const sql = query.sql(selectApprovals);
    const rows = guarded(() => this.#db.prepare<unknown[], ApprovalRow>(sql).all(...query.parameters));
    return query.page(rows, approvalOf);
  }

  async due(at: number, limit: number): ReturnType<ApprovalStore["due"]> {
    const soonest = guarded(() => this.#due.all(limit + 1));
    const due = soonest.slice(0, limit).filter((approval) => approval.expiresAt <= at);
    return { due: due.map(approvalOf), nextAt: soonest[due.length]?.expiresAt ?? null };
  }

  async grants(sessionId: SessionId): Promise<readonly Grant[]> {
    return guarded(() => this.#grants.all(sessionId));
  }
}

const approvalOrNull = (row: ApprovalRow | undefined): Approval | null =>
  row === undefined ? null : approvalOf(row);

function approvalOf({ key: _key, ...approval }: ApprovalRow): Approval {
  return approval;
}
