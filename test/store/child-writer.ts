/**
 * A process that commits turns as fast as it can and prints the id of every run whose commit was acknowledged.
 * What fails it prints, and tries again after a line on its standard input.
 */
import { once } from "node:events";
import { asId, type RunId, type SessionId } from "../../src/domain/ids.ts";
import { BeamclawError } from "../../src/domain/error-catalogue.ts";
import { openSqliteStore } from "../../src/store/sqlite-store.ts";
import { acceptRequest, finishRequest, start } from "./requests.ts";

const [file = "", attachmentsDir = ""] = process.argv.slice(2);
const store = await openSqliteStore({ file, attachmentsDir, writer: "thread" });
const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function talk(lane: number): Promise<void> {
  for (let turn = 0; ; turn += 1) {
    const id = asId<RunId>(`${lane}-${turn}`);
    const request = { id, sessionId: asId<SessionId>(`lane-${lane}`), at: start + turn };
    await persist(`accepted ${id}`, () => store.runs.accept(acceptRequest(request)));
    const answer = { output: "x".repeat(2_000) };
    await persist(`finished ${id}`, () => store.runs.finish(finishRequest({ id, attempt: 1 }, answer)));
  }
}

async function persist(what: string, write: () => Promise<{ readonly kind: string }>): Promise<void> {
  for (;;) {
    try {
      const { kind } = await write();
      return say(kind === "refused" ? `error ${what} refused` : what);
    } catch (error) {
      say(`error ${error instanceof BeamclawError ? error.code : String(error)}`);
      await once(process.stdin, "data");
    }
  }
}

await Promise.all([0, 1, 2, 3].map(talk));
