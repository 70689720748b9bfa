import type Database from "better-sqlite3";
import { BeamclawError, type ErrorCode } from "../../domain/error-catalogue.ts";
import type { Event } from "../../domain/event.ts";
import { type CommandName, type CommandResult, commandsOver } from "./commands.ts";
import { Journal } from "./journal.ts";
import { partsOver } from "./parts.ts";
import { toStoreError } from "./store-error.ts";

export interface Command {
  readonly name: CommandName;
  readonly input: unknown;
}

/** An error in a form that can be passed between threads. */
export interface CommandError {
  readonly code: ErrorCode;
  readonly message: string;
  /** Where the error came from: the stack of the original. */
  readonly origin?: string;
}

export type CommandOutcome =
  | { readonly kind: "done"; readonly value: unknown }
  | { readonly kind: "failed"; readonly error: CommandError };

export interface BatchOutcome {
  /** One for each command, in order. */
  readonly outcomes: readonly CommandOutcome[];
  /** What the batch has committed, in order. */
  readonly events: readonly Event[];
}

/**
 * The store's writes over one connection, all synchronous. Each command has a savepoint of its own: one that
 * fails, or is refused, takes nothing of its neighbours with it.
 */
export class SqliteCore {
  readonly #db: Database.Database;
  readonly #journal: Journal;
  readonly #commands: Readonly<Record<CommandName, (input: never) => unknown>>;
  readonly #begin: Database.Statement<[]>;
  readonly #commit: Database.Statement<[]>;
  readonly #savepoint: Database.Statement<[]>;
  readonly #release: Database.Statement<[]>;
  readonly #undo: Database.Statement<[]>;

  constructor(db: Database.Database) {
    this.#db = db;
    this.#journal = new Journal(db);
    this.#commands = commandsOver(db, partsOver(db, this.#journal));
    this.#begin = db.prepare("BEGIN IMMEDIATE");
    this.#commit = db.prepare("COMMIT");
    this.#savepoint = db.prepare("SAVEPOINT command");
    this.#release = db.prepare("RELEASE command");
    this.#undo = db.prepare("ROLLBACK TO command");
  }

  /** Runs the commands in one transaction. When it returns, what succeeded is on the disk. */
  batch(commands: readonly Command[]): BatchOutcome {
    try {
      this.#begin.run();
      const outcomes = commands.map((command) => this.#contained(command));
      this.#commit.run();
      return { outcomes, events: this.#journal.take() };
    } catch (thrown) {
      this.#abandon();
      const outcome = failure(thrown);
      return { outcomes: commands.map(() => outcome), events: [] };
    }
  }

  #contained({ name, input }: Command): CommandOutcome {
    const mark = this.#journal.length;
    this.#savepoint.run();
    try {
      // The name says what the input is; `Writer.execute` is where the compiler holds the two together.
      const value = this.#commands[name](input as never);
      this.#release.run();
      return { kind: "done", value };
    } catch (thrown) {
      // A full disk or an I/O error makes SQLite roll back everything: then no neighbour has survived either.
      if (!this.#db.inTransaction) throw thrown;
      this.#undo.run();
      this.#release.run();
      this.#journal.rollbackTo(mark);
      return failure(thrown);
    }
  }

  #abandon(): void {
    this.#journal.take();
    if (this.#db.inTransaction) this.#db.exec("ROLLBACK");
  }
}

/** What the caller of a command named `N` is told: its result, or its error thrown. */
export function resultOf<N extends CommandName>(outcome: CommandOutcome | undefined): CommandResult<N> {
  if (outcome === undefined) throw new BeamclawError("internal", "store: a batch left a command unanswered");
  if (outcome.kind === "failed") throw errorFrom(outcome.error);
  return outcome.value as CommandResult<N>; // the batch ran the command of that name
}

/** Makes an error ready to be passed to another thread. */
export function toCommandError(thrown: unknown): CommandError {
  const { code, message, cause } = toStoreError(thrown);
  const origin = cause instanceof Error ? cause.stack : undefined;
  return { code, message, ...(origin !== undefined && { origin }) };
}

export function errorFrom({ code, message, origin }: CommandError): BeamclawError {
  return new BeamclawError(code, message, { cause: origin });
}

function failure(thrown: unknown): CommandOutcome {
  return { kind: "failed", error: toCommandError(thrown) };
}
