import type Database from "better-sqlite3";
import type { MessageId, Principal, RunId } from "../domain/ids.ts";
import type { CallKey, Fenced, RecordStep, StepStore, StoredCall, StoredStep } from "./ports.ts";
import { keyLifetimeMs } from "./sqlite/idempotency.ts";
import { guarded, parameter } from "./sqlite/statement.ts";
import type { Writer } from "./writer.ts";

interface StepRow {
  readonly step: number;
  readonly messageId: MessageId;
  readonly wire: string;
  readonly extra: string | null;
}

interface CallRow extends Omit<StoredCall, "client" | "approved" | "result"> {
  readonly step: number;
  readonly client: 0 | 1;
  readonly approved: 0 | 1;
  readonly ok: 0 | 1 | null;
  readonly text: string | null;
}

interface FoundRow {
  readonly runId: RunId;
  readonly step: number;
}

/** Steps as they were recorded, wherever their texts live by now. */
export class SqliteStepStore implements StepStore {
  readonly #writer: Writer;
  readonly #steps: Database.Statement<[string], StepRow>;
  readonly #calls: Database.Statement<[string], CallRow>;
  readonly #find: Database.Statement<[string, string, number], FoundRow>;

  constructor(db: Database.Database, writer: Writer) {
    this.#writer = writer;
    // What has joined the history lives there: the answer in one message, each result in another.
    this.#steps = db.prepare(`
      SELECT t.step, t.message_id AS messageId, CAST(coalesce(t.wire, m.wire) AS TEXT) AS wire,
        coalesce(t.extra, m.extra) AS extra
      FROM runs r JOIN steps t ON t.run = r.key
      LEFT JOIN messages m ON m.session = r.session AND m.seq = t.message_seq
      WHERE r.id = ${parameter} ORDER BY t.step`);
    this.#calls = db.prepare(`
      SELECT c.step, c.position AS "index", c.call_id AS callId, c.tool, c.effect, c.client,
        coalesce(c.raw, c.arguments) AS arguments, c.state, c.approved, c.ok,
        coalesce(c.result, CAST(m.wire AS TEXT) ->> '$.content') AS text
      FROM runs r JOIN calls c ON c.run = r.key
      LEFT JOIN messages m ON m.session = r.session AND m.seq = c.message_seq
      WHERE r.id = ${parameter} ORDER BY c.step, c.position`);
    this.#find = db.prepare(`
      SELECT r.id AS runId, c.step FROM calls c
      JOIN runs r ON r.key = c.run
      JOIN steps t ON t.run = c.run AND t.step = c.step
      WHERE c.client = 1 AND c.call_id = ${parameter} AND r.principal = ${parameter} AND t.created_at > ${parameter}
      ORDER BY t.created_at DESC LIMIT 1`);
  }

  record(step: RecordStep): ReturnType<StepStore["record"]> {
    return this.#writer.execute("recordStep", step);
  }

  startCall(call: CallKey & { readonly at: number }): Promise<{ readonly kind: "started" } | Fenced> {
    return this.#writer.execute("startCall", call);
  }

  settle(call: Parameters<StepStore["settle"]>[0]): ReturnType<StepStore["settle"]> {
    return this.#writer.execute("settleCall", call);
  }

  async list(runId: RunId): Promise<readonly StoredStep[]> {
    const [steps, calls] = guarded(() => [this.#steps.all(runId), this.#calls.all(runId)] as const);
    return steps.map((row) => ({
      ...row,
      calls: calls.filter((call) => call.step === row.step).map(storedCall),
    }));
  }

  async findByCall(principal: Principal, callId: string, at: number): ReturnType<StepStore["findByCall"]> {
    const found = guarded(() => this.#find.get(callId, principal, at - keyLifetimeMs));
    if (found === undefined) return null;
    const step = (await this.list(found.runId)).find((candidate) => candidate.step === found.step);
    return step === undefined ? null : { runId: found.runId, step };
  }
}

function storedCall({ step: _step, ok, text, client, approved, ...call }: CallRow): StoredCall {
  return {
    ...call,
    client: client === 1,
    approved: approved === 1,
    result: ok === null ? null : { ok: ok === 1, text: text ?? "" },
  };
}
