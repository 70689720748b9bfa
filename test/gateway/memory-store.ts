import type { Approval } from "../../src/domain/approval.ts";
import type { Event, EventBody } from "../../src/domain/event.ts";
import { asId, type MessageId, type RunId, type SessionId } from "../../src/domain/ids.ts";
import type { Run } from "../../src/domain/run.ts";
import type { GatewayStore } from "../../src/gateway/ports.ts";
import type {
  Page,
  Paged,
  Session,
  StoredMessage,
  StoredStep,
  TokenRecord,
  TokenStore,
} from "../../src/store/ports.ts";

/** The reads that the gateway does, over plain maps that tests fill through `ScriptedConversations`. */
export class MemoryStore implements GatewayStore {
  readonly savedRuns = new Map<RunId, Run>();
  readonly savedSessions = new Map<SessionId, Session>();
  readonly savedMessages = new Map<SessionId, StoredMessage[]>();
  readonly savedApprovals = new Map<string, Approval>();
  readonly savedEvents: Event[] = [];
  readonly savedSteps: { runId: RunId; principal: string; step: StoredStep }[] = [];
  readonly openCalls = new Map<SessionId, readonly string[]>();
  readonly listeners = new Set<(events: readonly Event[]) => void>();

  readonly runs: GatewayStore["runs"] = {
    get: async (id) => this.savedRuns.get(id) ?? null,
    list: async ({ principal, sessionId, states, page }) =>
      paged(
        [...this.savedRuns.values()].filter(
          (run) =>
            (principal === undefined || run.principal === principal) &&
            (sessionId === undefined || run.sessionId === sessionId) &&
            (states === undefined || states.includes(run.state)),
        ),
        page,
      ),
  };

  readonly sessions: GatewayStore["sessions"] = {
    get: async (id) => this.savedSessions.get(id) ?? null,
    list: async ({ principal, page }) =>
      paged(
        [...this.savedSessions.values()].filter(
          (session) => principal === undefined || session.principal === principal,
        ),
        page,
      ),
    messages: async (id, after, limit) =>
      (this.savedMessages.get(id) ?? []).filter((message) => message.seq > after).slice(0, limit),
    openClientCalls: async (id) => this.openCalls.get(id) ?? [],
    delete: async (id) => {
      const busy = [...this.savedRuns.values()].some((run) => run.sessionId === id && run.endedAt === null);
      if (busy) return "session_busy";
      return this.savedSessions.delete(id) ? "deleted" : "not_found";
    },
  };

  readonly approvals: GatewayStore["approvals"] = {
    get: async (id) => this.savedApprovals.get(id) ?? null,
    list: async ({ principal, sessionId, states, page }) =>
      paged(
        [...this.savedApprovals.values()].filter(
          (approval) =>
            (principal === undefined || this.savedRuns.get(approval.runId)?.principal === principal) &&
            (sessionId === undefined || approval.sessionId === sessionId) &&
            (states === undefined || states.includes(approval.state)),
        ),
        page,
      ),
  };

  readonly events: GatewayStore["events"] = {
    after: async (sessionId, after, { runId, limit }) =>
      this.savedEvents
        .filter(
          (event) =>
            event.sessionId === sessionId &&
            event.seq > after &&
            (runId === undefined || event.runId === runId),
        )
        .slice(0, limit),
    subscribe: (listener) => {
      this.listeners.add(listener);
      return () => this.listeners.delete(listener);
    },
  };

  readonly steps: GatewayStore["steps"] = {
    list: async (runId) => this.savedSteps.filter((saved) => saved.runId === runId).map(({ step }) => step),
    findByCall: async (principal, callId) => {
      const hit = this.savedSteps.find(
        (saved) =>
          saved.principal === principal &&
          saved.step.calls.some((call) => call.client && call.callId === callId),
      );
      return hit === undefined ? null : { runId: hit.runId, step: hit.step };
    },
  };

  addEvent(run: Pick<Run, "id" | "sessionId">, ts: number, body: EventBody): void {
    const seq = this.savedEvents.filter((event) => event.sessionId === run.sessionId).length;
    const event = { sessionId: run.sessionId, seq, runId: run.id, ts, body };
    this.savedEvents.push(event);
    for (const listener of this.listeners) listener([event]);
  }

  addMessage(sessionId: SessionId, runId: RunId, at: number, wire: object): void {
    const messages = this.savedMessages.get(sessionId) ?? [];
    const id = asId<MessageId>(`message-${messages.length}`);
    messages.push({ seq: messages.length, id, runId, wire: JSON.stringify(wire), createdAt: at });
    this.savedMessages.set(sessionId, messages);
  }
}

/** The cursor is the number of entries before the page. */
function paged<T>(all: readonly T[], { cursor, limit }: Page): Paged<T> {
  const newestFirst = all.toReversed();
  const start = Number(cursor ?? 0);
  const end = start + limit;
  return { data: newestFirst.slice(start, end), nextCursor: end < all.length ? String(end) : null };
}

export class MemoryTokens implements TokenStore {
  #records: TokenRecord[] = [];

  async create(token: TokenRecord): Promise<boolean> {
    if (this.#records.some(({ name, revokedAt }) => name === token.name && revokedAt === null)) return false;
    this.#records.push(token);
    return true;
  }

  async revoke(name: string, at: number): Promise<boolean> {
    const live = this.#records.find((record) => record.name === name && record.revokedAt === null);
    if (live === undefined) return false;
    this.#records = this.#records.map((record) => (record === live ? { ...live, revokedAt: at } : record));
    return true;
  }

  async list(): Promise<readonly TokenRecord[]> {
    return this.#records;
  }
}
