import type { Decision } from "../domain/approval.ts";
import { textOf, type WireMessage } from "../domain/message.ts";

const commands: Readonly<Record<string, Decision>> = {
  "/yes": "approve",
  "/no": "deny",
  "/always": "always",
};

/** The decision that a message consists of; null where it says anything else, or anything more. */
export function decisionIn(messages: readonly WireMessage[]): Decision | null {
  const [message] = messages;
  if (messages.length !== 1 || message?.role !== "user") return null;
  return commands[textOf(message.content).trim().toLowerCase()] ?? null;
}
