import type { Event } from "../domain/event.ts";
import type { Command, CommandError, CommandOutcome } from "./sqlite/sqlite-core.ts";

/** The first thing that the writer thread is told: a thread can start before it is known what for. */
export interface WriterSetup {
  readonly file: string;
}

/** To the writer thread. It treats one message at a time, in order; only a backup lets others pass. */
export type ToWriter =
  | ({ readonly kind: "open" } & WriterSetup)
  | { readonly kind: "batch"; readonly commands: readonly Command[] }
  | { readonly kind: "checkpoint"; readonly mode: "passive" | "truncate" }
  | { readonly kind: "backup"; readonly id: number; readonly file: string }
  | { readonly kind: "close" };

/** From the writer thread. After `closed` or `unusable` it ends by itself. */
export type FromWriter =
  | { readonly kind: "ready" }
  | { readonly kind: "unusable"; readonly error: CommandError }
  | {
      readonly kind: "answered";
      readonly outcomes: readonly CommandOutcome[];
      readonly events: readonly Event[];
      readonly wal: WalSize;
    }
  | { readonly kind: "backup_done"; readonly id: number; readonly error: CommandError | null }
  | { readonly kind: "trouble"; readonly error: CommandError };

/** The write-ahead log in pages: all that it holds, and those that are not in the database file yet. */
export interface WalSize {
  readonly pages: number;
  readonly outstanding: number;
}
