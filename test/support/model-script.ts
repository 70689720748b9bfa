/**
 * Scripts that tell the model server what to answer, one directive a line. Several lines are several steps of
 * one turn; a step is picked by the number of answers since the last user message, so that a script needs no
 * state in the server and works across restarts of the product.
 *
 *   !say [gap=MS] TEXT         text in small deltas, `gap` milliseconds apart
 *   !think TEXT                reasoning before the next line's answer
 *   !with TEXT                 text before the next line's calls
 *   !call NAME JSON            a tool call; lines in a row are parallel calls of one answer
 *   !json TEXT                 the answer as one JSON document although a stream was asked for
 *   !cut TEXT                  bytes cut inside characters
 *   !nodone TEXT, !nofinish TEXT   a stream without its end marker, without its reason to stop
 *   !nothing                   an answer without text
 *   !status code=CODE [retry-after=S] [times=N] [MESSAGE]
 *   !error MESSAGE             an error object with status 200
 *   !reset [after=N] [times=N], !stall [after=N] [times=N]   at once, or after N deltas
 *   !malformed, !html, !empty  broken event, HTML with status 200, choices that never come
 *
 * `times=N`: only so often, then the line counts as absent.
 */
export interface Call {
  readonly name: string;
  readonly arguments: string;
}

export interface Step {
  readonly kind:
    | "say"
    | "json"
    | "cut"
    | "nodone"
    | "nofinish"
    | "status"
    | "error"
    | "reset"
    | "stall"
    | "malformed"
    | "html"
    | "empty";
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly Call[];
  readonly options: Readonly<Record<string, string>>;
  /** The line itself: what `times` is counted by. */
  readonly line: string;
}

const KINDS = new Set<string>([
  "say",
  "json",
  "cut",
  "nodone",
  "nofinish",
  "status",
  "error",
  "reset",
  "stall",
  "malformed",
  "html",
  "empty",
]);

const isKind = (name: string): name is Step["kind"] => KINDS.has(name);

/** Steps of a script; empty where the text holds no directive. */
export function parseScript(text: string): readonly Step[] {
  const steps: Step[] = [];
  let reasoning = "";
  let before = "";
  for (const line of text.split("\n")) {
    const [, name = "", rest = ""] = /^!(\w+)\s*(.*)$/.exec(line.trim()) ?? [];
    if (name === "") continue;
    if (name === "think") reasoning += rest;
    else if (name === "with") before += rest;
    else if (name === "call") {
      addCall(steps, { reasoning, text: before, line }, rest);
      [reasoning, before] = ["", ""];
    } else {
      const { options, text: words } = parseOptions(rest);
      const kind = name === "nothing" ? "say" : name;
      if (!isKind(kind)) throw new Error(`unknown directive !${name}`);
      steps.push({ kind, text: before + words, reasoning, calls: [], options, line });
      [reasoning, before] = ["", ""];
    }
  }
  return steps;
}

function addCall(steps: Step[], step: Pick<Step, "reasoning" | "text" | "line">, rest: string): void {
  const [, name = "", json = "{}"] = /^(\S+)\s*(.*)$/.exec(rest) ?? [];
  const call = { name, arguments: json };
  const last = steps.at(-1);
  if (last !== undefined && last.calls.length > 0 && step.text === "" && step.reasoning === "") {
    steps[steps.length - 1] = { ...last, calls: [...last.calls, call] };
  } else {
    steps.push({ kind: "say", options: {}, calls: [call], ...step });
  }
}

function parseOptions(rest: string): { options: Record<string, string>; text: string } {
  const options: Record<string, string> = {};
  let text = rest;
  for (;;) {
    const match = /^([a-z-]+)=(\S+)\s*/.exec(text);
    if (match === null) return { options, text };
    options[match[1] ?? ""] = match[2] ?? "";
    text = text.slice(match[0].length);
  }
}
