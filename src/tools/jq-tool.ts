/**
 * `jq` as WebAssembly in a thread of its own: the filter is never shell text, sees no file, no environment and
 * no network, and a filter without end is ended from outside. Memory is bounded by the build (256 MiB).
 */
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { z } from "zod";
import { lazily } from "../kernel/lazily.ts";
import type { Clock } from "../kernel/clock.ts";
import { Deadline } from "./deadline.ts";
import { defineTool, failed, succeeded } from "./define-tool.ts";
import { clip, fromOutside } from "./model-text.ts";
import { Slots } from "./slots.ts";
import type { Tool, ToolResult } from "./tool.ts";

const MAX_INPUT_CHARS = 1_048_576;
const MAX_FILTER_CHARS = 16_384;
const MAX_OUTPUT_CHARS = 32_768;
/** Each run may need the build's whole memory. */
const MAX_PARALLEL = 2;

/**
 * The thread's program, as text because a bundle has no separate file for it. jq-wasm takes its input byte by byte with
 * `slice(1)`, a copy of all the rest each time; the subclass makes that a view (100 ms instead of 6 s for
 * 256 KiB). A space before the filter keeps one that begins with `-` from being read as an option.
 */
const THREAD = `
const { parentPort, workerData } = require("node:worker_threads");
const Encoder = TextEncoder;
class Input extends Uint8Array {
  slice(start, end) { return start === 1 && end === undefined ? this.subarray(1) : super.slice(start, end); }
}
globalThis.TextEncoder = class {
  encode(text) { const bytes = new Encoder().encode(text); return new Input(bytes.buffer, bytes.byteOffset, bytes.length); }
};
require(workerData.library).raw(workerData.input, " " + workerData.filter).then(
  (text) => parentPort.postMessage({ ok: true, text }),
  (error) => parentPort.postMessage({ ok: false, text: String(error.message) }),
);`;

export interface JqOptions {
  readonly clock: Clock;
  /** For one filter, waiting for a free thread not counted. */
  readonly timeoutMs: number;
}

export function jqTool(options: JqOptions): Tool {
  const slots = new Slots(MAX_PARALLEL);
  return defineTool({
    name: "jq",
    description: "Apply a jq filter to JSON text.",
    input: z.strictObject({
      filter: z.string().min(1).max(MAX_FILTER_CHARS).describe("jq filter, such as .items[].name"),
      input: z.string().max(MAX_INPUT_CHARS).describe("JSON text"),
    }),
    minAutonomy: "read_only",
    leastEffect: "none",
    effect: () => "none",
    pattern: () => null,
    summary: ({ filter }) => filter,
    async run({ filter, input }, { signal }) {
      if (!(await slots.take(signal))) return failed("Cancelled.");
      try {
        return await runFilter(filter, input, options, signal);
      } finally {
        slots.release();
      }
    },
  });
}

async function runFilter(
  filter: string,
  input: string,
  { clock, timeoutMs }: JqOptions,
  signal: AbortSignal,
): Promise<ToolResult> {
  using deadline = new Deadline(clock, timeoutMs, signal);
  const worker = new Worker(THREAD, {
    eval: true,
    workerData: { library: createRequire(import.meta.url).resolve("jq-wasm"), filter, input },
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: 128 },
    stdout: true, // the daemon's own output is not the library's
    stderr: true,
  });
  try {
    return await answerOf(worker, deadline.signal);
  } catch (thrown) {
    if (deadline.expired)
      return failed(`Stopped after ${timeoutMs / 1000} s: the filter or its output is too large.`);
    if (signal.aborted) return failed("Cancelled.");
    return failed(`The filter failed: ${thrown instanceof Error ? thrown.message : "no answer"}.`);
  } finally {
    await worker.terminate();
  }
}

const answer = lazily(() => z.object({ ok: z.boolean(), text: z.string() }));

/** Rejects when the thread dies, for want of memory for instance, or when `signal` aborts. */
function answerOf(worker: Worker, signal: AbortSignal): Promise<ToolResult> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    worker.once("error", reject);
    worker.once("exit", () => reject(new Error("its thread ended")));
    worker.once("message", (message) => {
      const { ok, text } = answer().parse(message);
      resolve(describe(ok, text));
    });
  });
}

function describe(ok: boolean, text: string): ToolResult {
  if (text === "") return succeeded("(no output)");
  const clipped = clip(text, MAX_OUTPUT_CHARS, "narrow the filter");
  return ok ? succeeded(fromOutside("jq", clipped)) : failed(fromOutside("jq", clipped));
}
