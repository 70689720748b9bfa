/** The load client, a process of its own: takes a `Load` over IPC, answers with a `LoadReport`, ends with its parent. */
import { Load, runLoad } from "./load.ts";

process.on("disconnect", () => process.exit(0));
process.on("message", (message) => {
  void runLoad(Load.parse(message)).then(
    (report) => process.send?.(report),
    (error: unknown) =>
      process.send?.({ elapsedMs: 0, firstTokenMs: [], failures: 1, firstFailure: String(error) }),
  );
});
