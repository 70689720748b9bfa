import { userInfo } from "node:os";
import { createParser } from "eventsource-parser";
import { envValue } from "../app/home.ts";
import { BeamclawError } from "../domain/error-catalogue.ts";
import { errorOf, type StreamedAnswer } from "./daemon-client.ts";
import type { Invocation } from "./invocation.ts";
import { arrayOf, dataOf, objectOf, textOf } from "./json-fields.ts";

/** What one request brought. */
interface Reply {
  readonly text: string;
  readonly runId: string;
  readonly sessionId: string;
}

/** The conversation that a message goes to, as headers. */
type Conversation = Readonly<Record<string, string>>;

/**
 * Sends one message and prints the answer as it comes. If the agent asks before it acts, a person at a terminal
 * is asked here and now; a script is told how to answer and gets exit code 1, because it has no answer.
 */
export async function send(invocation: Invocation): Promise<number> {
  const { terminal } = invocation;
  const message = await messageOf(invocation);
  const session = invocation.text("session");
  let reply = await exchange(
    invocation,
    message,
    session === null ? { "x-user-id": userInfo().username } : { "x-session-id": session },
  );
  for (;;) {
    const question = await openQuestion(invocation, reply.runId);
    if (question === null) break;
    const answer = terminal.canAsk && !invocation.flag("json") ? await askPerson(invocation) : null;
    if (answer === null) {
      terminal.note(`The agent waits for approval: beamclaw approvals approve ${question} (or deny, always)`);
      return 1;
    }
    reply = await exchange(invocation, answer, { "x-session-id": reply.sessionId });
  }
  if (invocation.flag("json")) {
    terminal.json({ text: reply.text, run_id: reply.runId, session_id: reply.sessionId });
  }
  return 0;
}

async function messageOf(invocation: Invocation): Promise<string> {
  const operand = invocation.operand(0);
  const text = operand === "-" ? await invocation.terminal.readInput() : operand;
  if (text.trim() === "") throw new BeamclawError("usage", "the message is empty");
  return text;
}

async function exchange(invocation: Invocation, content: string, conversation: Conversation): Promise<Reply> {
  const { client, terminal, surroundings } = invocation;
  const agent = invocation.text("agent") ?? envValue(surroundings.env, "BEAMCLAW_AGENT");
  const answer = await client.stream("POST", "/v1/chat/completions", {
    headers: conversation,
    body: {
      model: agent === null ? "beamclaw" : `beamclaw/${agent}`,
      stream: true,
      messages: [{ role: "user", content }],
    },
  });
  const silent = invocation.flag("json");
  const text = await readCompletion(answer, (delta) => {
    if (!silent) terminal.write(delta);
  });
  if (!silent && !text.endsWith("\n")) terminal.line();
  const { "x-run-id": runId, "x-session-id": sessionId } = answer.headers;
  return { text, runId: textOf(runId), sessionId: textOf(sessionId) };
}

/** The text of a streamed completion. Throws the error that the stream carries, or its missing end. */
export async function readCompletion(
  answer: StreamedAnswer,
  onDelta: (text: string) => void,
): Promise<string> {
  let text = "";
  let isDone = false;
  const parser = createParser({
    onEvent: ({ data }) => {
      if (data === "[DONE]") isDone = true;
      else {
        const delta = deltaOf(data);
        text += delta;
        if (delta !== "") onDelta(delta);
      }
    },
  });
  for await (const chunk of answer.body) parser.feed(chunk);
  if (!isDone) throw new BeamclawError("interrupted", "the answer broke off");
  return text;
}

function deltaOf(data: string): string {
  const frame = objectOf(JSON.parse(data));
  if ("error" in frame) throw errorOf(data);
  const [choice] = arrayOf(frame["choices"]);
  return textOf(objectOf(objectOf(choice)["delta"])["content"]);
}

/** Id of the question that the run waits for; null where it waits for none. */
async function openQuestion(invocation: Invocation, runId: string): Promise<string | null> {
  const pending = dataOf(await invocation.client.get("/v1/approvals?state=pending&limit=200"));
  const found = pending.map(objectOf).find((approval) => approval["run_id"] === runId);
  return found === undefined ? null : textOf(found["id"]);
}

/** The decision as the command that answers it; null where the person went away. */
async function askPerson(invocation: Invocation): Promise<string | null> {
  for (;;) {
    const answer = await invocation.terminal.ask("Allow it? [y]es, [n]o, [a]lways in this session: ");
    if (answer === null) return null;
    const command = decisions.get(answer.toLowerCase());
    if (command !== undefined) return command;
  }
}

const decisions: ReadonlyMap<string, string> = new Map([
  ["y", "/yes"],
  ["yes", "/yes"],
  ["n", "/no"],
  ["no", "/no"],
  ["a", "/always"],
  ["always", "/always"],
]);
