import type { Event } from "../domain/event.ts";
import type { CommandInput, CommandName, CommandResult } from "./sqlite/commands.ts";

/**
 * The one way to write: commands by name, each committed and fsynced when its promise resolves. Rejects with
 * `BeamclawError`; after a rejection nothing of the command is kept, unless the writer itself has died.
 */
export interface Writer {
  execute<N extends CommandName>(name: N, input: CommandInput<N>): Promise<CommandResult<N>>;
  /** Writes a consistent copy to a new file while writing goes on. */
  backup(file: string): Promise<void>;
  /** Finishes what was asked before, then closes the connection. Later calls reject. */
  close(): Promise<void>;
}

export interface WriterNews {
  /** Events of each commit, in commit order, before the promises of its commands resolve. */
  onEvents(events: readonly Event[]): void;
  /** Trouble that no caller waits for: a checkpoint that failed, a listener that threw, the writer's death. */
  onError(error: Error): void;
}
