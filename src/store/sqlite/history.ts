import type Database from "better-sqlite3";
import { type MessageId, newId } from "../../domain/ids.ts";
import type { Journal } from "./journal.ts";
import type { Lane } from "./lanes.ts";
import type { RunRef } from "./open-runs.ts";
import { type EncodedMessage, toolMessageWire } from "./wire.ts";

/** What the model is told about a call that the client was asked to answer and passed over. */
export const notAnswered = "The client did not answer this call.";

/** How a run's input joins a history that may still ask the client for the results of its calls. */
export interface Joining {
  /** Calls that get a synthetic result, because the input passes them over. */
  readonly unanswered: readonly string[];
  /** The input in the order in which it joins: answers first, then the rest. */
  readonly messages: readonly EncodedMessage[];
}

/**
 * Keeps a history paired whatever the input is: every open call gets exactly one result before anything else is
 * said, and a tool message that answers no open call stays out (its call has been answered by an earlier run).
 */
export function arrangeInput(openCalls: readonly string[], messages: readonly EncodedMessage[]): Joining {
  const open = new Set(openCalls);
  const answers: EncodedMessage[] = [];
  const rest: EncodedMessage[] = [];
  for (const message of messages) {
    if (message.answers === null) rest.push(message);
    else if (open.delete(message.answers)) answers.push(message);
  }
  return { unanswered: [...open], messages: [...answers, ...rest] };
}

/** Appends messages to a session's history, each with its `message.added` event. */
export class History {
  readonly #journal: Journal;
  readonly #insert: Database.Statement<
    [number, number, string, number, number, number, string | null, Buffer]
  >;

  constructor(db: Database.Database, journal: Journal) {
    this.#journal = journal;
    this.#insert = db.prepare(`
      INSERT INTO messages (session, seq, id, run, created_at, attachments, extra, wire)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
  }

  /** Returns the message's seq. */
  append(lane: Lane, run: RunRef, at: number, message: EncodedMessage, extra: string | null = null): number {
    const seq = lane.nextSeq;
    const attachments = message.attachments ? 1 : 0;
    const wire = Buffer.from(message.wire);
    this.#insert.run(lane.key, seq, message.id, run.key, at, attachments, extra, wire);
    lane.nextSeq += 1;
    this.#journal.append(lane, run, at, {
      type: "message.added",
      messageId: message.id,
      messageSeq: seq,
      role: message.role,
    });
    return seq;
  }

  appendAssistant(lane: Lane, run: RunRef, at: number, answer: AssistantAnswer): number {
    const { id, wire } = answer;
    const message = { id, role: "assistant", wire, answers: null, attachments: false } as const;
    return this.append(lane, run, at, message, answer.extra);
  }

  appendToolResult(lane: Lane, run: RunRef, at: number, callId: string, text: string): number {
    const wire = toolMessageWire(callId, text);
    const message = {
      id: newId<MessageId>(at),
      role: "tool",
      wire,
      answers: callId,
      attachments: false,
    } as const;
    return this.append(lane, run, at, message);
  }

  /** Lets a run's input join; afterwards the client owes no answer. */
  join(lane: Lane, run: RunRef, at: number, joining: Joining): void {
    for (const callId of joining.unanswered) this.appendToolResult(lane, run, at, callId, notAnswered);
    for (const message of joining.messages) this.append(lane, run, at, message);
    lane.openCalls = null;
  }
}

/** An answer of the model as wire JSON. */
export interface AssistantAnswer {
  readonly id: MessageId;
  readonly wire: string;
  readonly extra: string | null;
}

/** Call ids that the client has to answer, from the column of a session. */
export function openCallsOf(column: string | null): readonly string[] {
  if (column === null) return [];
  const ids: readonly string[] = JSON.parse(column);
  return ids;
}
