import type { MessageId } from "../../domain/ids.ts";
import type { ToolMessage, WireMessage } from "../../domain/message.ts";

/** A message on its way to the history: its JSON is made once, and what the store must know is beside it. */
export interface EncodedMessage {
  readonly id: MessageId;
  readonly role: WireMessage["role"];
  readonly wire: string;
  /** The call that a tool message answers. */
  readonly answers: string | null;
  /** Whether the JSON refers to `attachment:<id>` parts. */
  readonly attachments: boolean;
}

export function encodeMessage(id: MessageId, message: WireMessage): EncodedMessage {
  return {
    id,
    role: message.role,
    wire: JSON.stringify(message),
    answers: message.role === "tool" ? message.tool_call_id : null,
    attachments: attachmentsOf(message).length > 0,
  };
}

const attachmentScheme = "attachment:";

export const attachmentUrl = (id: string): string => `${attachmentScheme}${id}`;

/** Ids of the attachments that a message refers to. */
export function attachmentsOf(message: WireMessage): string[] {
  if (message.content === null || typeof message.content === "string") return [];
  return message.content.flatMap((part) =>
    part.type === "image_url" && part.image_url.url.startsWith(attachmentScheme)
      ? [part.image_url.url.slice(attachmentScheme.length)]
      : [],
  );
}

export function toolMessageWire(callId: string, content: string): string {
  return JSON.stringify({ role: "tool", tool_call_id: callId, content } satisfies ToolMessage);
}

/** One JSON a line: JSON text holds no raw line feed, so the lines can be told apart without a parse. */
export const joinLines = (wires: readonly string[]): string => wires.join("\n");

export const splitLines = (lines: string): string[] => (lines === "" ? [] : lines.split("\n"));

/** Whether wire JSON has an attachment part. Inside a JSON string the quotes would be escaped, so text never matches. */
export const refersToAttachment = (wire: string): boolean => wire.includes(`"url":"${attachmentScheme}`);
