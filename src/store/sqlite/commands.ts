import type Database from "better-sqlite3";
import { ApprovalCommands } from "./approval-commands.ts";
import type { Parts } from "./parts.ts";
import { RunCommands } from "./run-commands.ts";
import { RunEnds } from "./run-ends.ts";
import { SessionCommands } from "./session-commands.ts";
import { StepCommands } from "./step-commands.ts";
import { TokenCommands } from "./token-commands.ts";
import { UpkeepCommands } from "./upkeep-commands.ts";

/** Every write of the store by name. Inputs and results are plain data that can be passed between threads. */
export function commandsOver(db: Database.Database, parts: Parts) {
  const ends = new RunEnds(db, parts);
  const run = new RunCommands(db, parts, ends);
  const step = new StepCommands(db, parts);
  const approval = new ApprovalCommands(db, parts);
  const session = new SessionCommands(db, parts);
  const token = new TokenCommands(db);
  const upkeep = new UpkeepCommands(db);
  return {
    accept: run.accept.bind(run),
    startNext: run.startNext.bind(run),
    resume: run.resume.bind(run),
    finish: ends.finish.bind(ends),
    recordStep: step.record.bind(step),
    startCall: step.startCall.bind(step),
    settleCall: step.settle.bind(step),
    ask: approval.ask.bind(approval),
    decide: approval.decide.bind(approval),
    moveStart: session.moveStart.bind(session),
    resetSession: session.reset.bind(session),
    deleteSession: session.delete.bind(session),
    createToken: token.create.bind(token),
    revokeToken: token.revoke.bind(token),
    putAttachment: upkeep.putAttachment.bind(upkeep),
    purge: upkeep.purge.bind(upkeep),
    probe: upkeep.probe.bind(upkeep),
  };
}

export type Commands = ReturnType<typeof commandsOver>;
export type CommandName = keyof Commands;
export type CommandInput<N extends CommandName> = Parameters<Commands[N]>[0];
export type CommandResult<N extends CommandName> = ReturnType<Commands[N]>;
