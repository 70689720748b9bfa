import { asRecord, asText, isRecord, parseJson } from "./json-value.ts";
import { MarkdownCode } from "./markdown-code.ts";
import type { DraftCall } from "./tool-call-assembler.ts";

/*
 * Tool calls that a model writes into its text, for models that know no other way:
 *
 *   <tool_call><name>NAME</name><args>JSON</args></tool_call>      also toolcall and invoke; no attributes
 *   <tool_call>{"name": "NAME", "arguments": {…}}</tool_call>      as the Hermes and Qwen templates do
 *   ```json fences around {"tool" or "name": "NAME", "args": {…}}
 *
 * Only declared tools are called. What stands in Markdown code, other than such a fence itself, is text, and so
 * is JSON outside these forms. Where XML calls are found, fences are text.
 */
const XML_TAGS = ["tool_call", "toolcall", "invoke"];
const FENCE = "```json";
const OPENERS = [...XML_TAGS.map((tag) => `<${tag}>`), FENCE];
/** Characters; what is longer is no call, so that a mark that is never closed cannot hold an answer back. */
const MAX_CALL = 256 * 1024;

type Form = "xml" | "fence";

/** What the text that has not been let through begins with. */
type Next =
  | { readonly kind: "prose"; readonly length: number }
  | { readonly kind: "candidate"; readonly form: Form; readonly length: number; readonly body: string }
  /** Not to be told before a character of `until` has come. */
  | { readonly kind: "undecided"; readonly until: string };

interface Segment {
  readonly text: string;
  readonly form: Form | null;
  readonly calls: readonly DraftCall[];
}

/** Reads a text as it arrives and lets through what is surely prose. */
export class TextCallScanner {
  readonly #declared: ReadonlySet<string>;
  readonly #code = new MarkdownCode();
  /** Not let through. */
  #held = "";
  /** Came while `#held` was undecided; joined to it once a character of `#until` is among it. */
  #arrived: string[] = [];
  #until = "";
  /** Segments from the first call on: they wait for the end, because native calls would go before them. */
  readonly #kept: Segment[] = [];

  constructor(declared: ReadonlySet<string>) {
    this.#declared = declared;
  }

  /** What of the text so far is surely prose, beyond what has been returned before. */
  push(text: string): string {
    this.#arrived.push(text);
    if (this.#until !== "" && !text.includes(this.#until)) return "";
    return this.#advance(false);
  }

  /** The text is over: the prose that was held back, and the calls. With native calls, all of it is prose. */
  end(native: boolean): { readonly text: string; readonly calls: readonly DraftCall[] } {
    const prose = this.#advance(true);
    const xml = this.#kept.some(({ form, calls }) => form === "xml" && calls.length > 0);
    const isCall = ({ form, calls }: Segment): boolean =>
      !native && calls.length > 0 && form === (xml ? "xml" : "fence");
    const calls = this.#kept.filter(isCall).flatMap((segment) => segment.calls);
    const rest = this.#kept.map((segment) => (isCall(segment) ? "" : segment.text)).join("");
    return { text: calls.length > 0 && rest.trim() === "" ? prose : prose + rest, calls };
  }

  #advance(final: boolean): string {
    this.#held += this.#arrived.join("");
    this.#arrived = [];
    this.#until = "";
    let out = "";
    while (this.#held !== "") {
      const next = nextPart(this.#held, this.#code, final);
      if (next.kind === "undecided") {
        this.#until = next.until;
        break;
      }
      const segment = this.#take(next);
      if (this.#kept.length > 0 || segment.calls.length > 0) this.#kept.push(segment);
      else out += segment.text;
    }
    return out;
  }

  /** Takes a part off what is held. The code tracker sees what a reader will see, so no calls. */
  #take(part: Exclude<Next, { kind: "undecided" }>): Segment {
    const calls = part.kind === "candidate" ? readCall(part.form, part.body, this.#declared) : [];
    // Marks that turn out to be no call lose only their first character: another may stand inside.
    const length = part.kind === "candidate" && part.form === "xml" && calls.length === 0 ? 1 : part.length;
    const text = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    if (calls.length === 0) this.#code.advance(text);
    return { text, form: part.kind === "candidate" ? part.form : null, calls };
  }
}

/** `final`: no more text comes, so nothing is undecided. */
function nextPart(text: string, code: MarkdownCode, final: boolean): Next {
  const at = openerAt(text, final);
  if (at > 0) return { kind: "prose", length: at };
  const opener = OPENERS.find((known) => text.startsWith(known));
  if (opener === FENCE) return fencePart(text, code, final);
  if (text.startsWith("<") && code.inside) return { kind: "prose", length: 1 };
  if (opener === undefined) return { kind: "undecided", until: "" };
  const close = text.indexOf(`</${opener.slice(1)}`, opener.length);
  if (close < 0 && text.length > MAX_CALL) return { kind: "prose", length: 1 };
  if (close < 0 && !final) return { kind: "undecided", until: ">" };
  // A closing tag that is missing counts as standing at the end.
  const end = close < 0 ? text.length : close;
  const length = close < 0 ? text.length : close + opener.length + 1;
  return { kind: "candidate", form: "xml", length, body: text.slice(opener.length, end) };
}

function fencePart(text: string, code: MarkdownCode, final: boolean): Next {
  const prose: Next = { kind: "prose", length: 3 };
  if (!code.mayOpenFence || text.length > MAX_CALL) return prose;
  const lineEnd = text.indexOf("\n");
  if (lineEnd < 0) return final ? prose : { kind: "undecided", until: "\n" };
  if (text.slice(FENCE.length, lineEnd).trim() !== "") return prose;
  const close = /\n {0,3}`{3,}[ \t]*(?:\r?\n|$)/.exec(text.slice(lineEnd));
  // At the end of what has come, the closing line itself may still go on.
  if (close === null || (!final && !close[0].endsWith("\n"))) {
    return final ? prose : { kind: "undecided", until: "\n" };
  }
  const end = lineEnd + close.index;
  const body = text.slice(lineEnd, end);
  return { kind: "candidate", form: "fence", length: end + close[0].trimEnd().length, body };
}

/** Where the first opening mark stands, or, unless `final`, may be about to stand. Else the text's length. */
function openerAt(text: string, final: boolean): number {
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (char !== "<" && char !== "`") continue;
    const rest = text.slice(at, at + MAX_OPENER);
    if (OPENERS.some((known) => rest.startsWith(known) || (!final && known.startsWith(rest)))) return at;
  }
  return text.length;
}

const MAX_OPENER = Math.max(...OPENERS.map((opener) => opener.length));

/** The call in a candidate's body; empty where it is none, or names no declared tool. */
function readCall(form: Form, body: string, declared: ReadonlySet<string>): readonly DraftCall[] {
  const draft = (form === "xml" ? xmlCall(body) : null) ?? jsonCall(form, body);
  return draft !== null && declared.has(draft.name) ? [draft] : [];
}

function xmlCall(body: string): DraftCall | null {
  const name = /<name>([\s\S]*?)<\/name>/.exec(body)?.[1]?.trim();
  const args = /<args>([\s\S]*?)(?:<\/args>|$)/.exec(body)?.[1]?.trim();
  return name === undefined || args === undefined ? null : { id: undefined, name, arguments: asObject(args) };
}

function jsonCall(form: Form, body: string): DraftCall | null {
  const value = asRecord(parseJson(body));
  const name = asText(value?.["name"]) ?? asText(value?.["tool"]);
  const args =
    value?.["args"] ?? (form === "xml" ? (value?.["arguments"] ?? value?.["parameters"]) : undefined);
  if (name === undefined || args === undefined) return null;
  return {
    id: undefined,
    name,
    arguments: typeof args === "string" ? asObject(args) : asObject(JSON.stringify(args)),
  };
}

/** Tools take objects; anything else reaches them as the text that it is, under `raw`. */
const asObject = (json: string): string => (isRecord(parseJson(json)) ? json : JSON.stringify({ raw: json }));
