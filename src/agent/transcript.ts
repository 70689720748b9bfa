/** What the model sees of a conversation: attachments expanded, old images left out, size estimated. */
import type { AttachmentId } from "../domain/ids.ts";
import { asId } from "../domain/ids.ts";
import type { ContentPart, WireMessage } from "../domain/message.ts";
import type { AttachmentStore, TranscriptEntry } from "../store/ports.ts";

const attachmentScheme = "attachment:";
/** Images of older user messages than this many are left out of what is sent; the history keeps them. */
const messagesWithImages = 5;

/**
 * Takes data-URL images out of user messages and into the attachment store, so that a history row stays small
 * and refers to `attachment:<id>`. Other images stay as they are.
 */
export async function storeImages(
  messages: readonly WireMessage[],
  attachments: AttachmentStore,
): Promise<readonly WireMessage[]> {
  if (!messages.some(hasDataUrl)) return messages;
  return Promise.all(
    messages.map(async (message) =>
      message.role === "user" && typeof message.content !== "string"
        ? {
            ...message,
            content: await Promise.all(message.content.map((part) => storeImage(part, attachments))),
          }
        : message,
    ),
  );
}

/** Replaces references by data URLs in the newest user messages, by a note in older ones. */
export async function expandImages(
  entries: readonly TranscriptEntry[],
  attachments: AttachmentStore,
): Promise<readonly TranscriptEntry[]> {
  if (!entries.some((entry) => entry.attachments)) return entries;
  const users = entries.flatMap((entry, index) => (isUser(entry.wire) ? [index] : []));
  const oldest = users.at(-messagesWithImages) ?? 0;
  return Promise.all(
    entries.map(async (entry, index) =>
      entry.attachments
        ? { ...entry, wire: await expandEntry(entry.wire, index >= oldest, attachments) }
        : entry,
    ),
  );
}

/** A rough count of tokens: four characters each, as good as any without the model's own tokenizer. */
export function estimateTokens(texts: readonly { readonly length: number }[]): number {
  return Math.ceil(texts.reduce((sum, text) => sum + text.length, 0) / 4);
}

/**
 * Where to cut a conversation so that about `budget` tokens stay: an index at a user message, so that a tool call
 * is never separated from its result. 0 where nothing can be cut.
 */
export function cutFor(entries: readonly TranscriptEntry[], budget: number): number {
  let tokens = 0;
  let cut = 0;
  for (let index = entries.length - 1; index > 0; index -= 1) {
    const entry = entries[index];
    if (entry === undefined) break;
    tokens += estimateTokens([entry.wire]);
    if (tokens > budget && cut > 0) break;
    if (isUser(entry.wire)) cut = index;
  }
  return cut;
}

const hasDataUrl = (message: WireMessage): boolean =>
  message.role === "user" &&
  typeof message.content !== "string" &&
  message.content.some((part) => part.type === "image_url" && /^data:/i.test(part.image_url.url));

async function storeImage(part: ContentPart, attachments: AttachmentStore): Promise<ContentPart> {
  if (part.type !== "image_url") return part;
  const match = /^data:([a-z]+\/[a-z0-9.+-]+);base64,/i.exec(part.image_url.url);
  if (match?.[1] === undefined) return part;
  const bytes = Buffer.from(part.image_url.url.slice(match[0].length), "base64");
  const id = await attachments.put(bytes, match[1].toLowerCase());
  return { ...part, image_url: { ...part.image_url, url: `${attachmentScheme}${id}` } };
}

async function expandEntry(wire: string, recent: boolean, attachments: AttachmentStore): Promise<string> {
  const message: { content: ContentPart[] } = JSON.parse(wire);
  const content = await Promise.all(message.content.map((part) => expandPart(part, recent, attachments)));
  return JSON.stringify({ ...message, content });
}

async function expandPart(
  part: ContentPart,
  recent: boolean,
  attachments: AttachmentStore,
): Promise<ContentPart> {
  if (part.type !== "image_url" || !part.image_url.url.startsWith(attachmentScheme)) return part;
  const id = asId<AttachmentId>(part.image_url.url.slice(attachmentScheme.length));
  const found = recent ? await attachments.get(id) : null;
  if (found === null)
    return { type: "text", text: recent ? "[image is no longer available]" : "[earlier image]" };
  const url = `data:${found.mime};base64,${Buffer.from(found.bytes).toString("base64")}`;
  return { ...part, image_url: { ...part.image_url, url } };
}

const isUser = (wire: string): boolean => wire.startsWith('{"role":"user"');
