import { BeamclawError } from "../domain/error-catalogue.ts";
import type { CommandSpec } from "./command-table.ts";
import type { Invocation } from "./invocation.ts";

/** Prints a script that completes commands, sub-commands and options; made from the command table. */
export async function completion(invocation: Invocation, table: readonly CommandSpec[]): Promise<number> {
  const shell = invocation.operand(0);
  const script = scripts.get(shell);
  if (script === undefined) {
    throw new BeamclawError("usage", `there are completions for ${[...scripts.keys()].join(", ")}`);
  }
  invocation.terminal.write(script(wordsAfter(table, [])));
  return 0;
}

/** What may follow each complete command: sub-commands, or else options. */
type Words = readonly (readonly [command: string, next: readonly string[]])[];

export function wordsAfter(table: readonly CommandSpec[], path: readonly string[]): Words {
  const here: Words[number] = [path.join(" "), table.map(({ usage }) => nameOf(usage))];
  const below = table.flatMap((spec) => {
    const child = [...path, nameOf(spec.usage)];
    if (spec.commands !== undefined) return wordsAfter(spec.commands, child);
    return [[child.join(" "), flagsOf(spec)] satisfies Words[number]];
  });
  return [here, ...below];
}

const nameOf = (usage: string): string => usage.split(" ")[0] ?? usage;

const flagsOf = ({ options = [] }: CommandSpec): readonly string[] =>
  options
    .filter(({ about }) => !about.startsWith("(internal)"))
    .flatMap(({ flags }) => flags.match(/--[a-z-]+/g) ?? []);

const bash = (words: Words): string => `# source <(beamclaw completion bash)
_beamclaw() {
  local typed="\${COMP_WORDS[*]:1:COMP_CWORD-1}" next=""
  case "$typed" in
${words.map(bashCase).toReversed().join("\n")}
  esac
  COMPREPLY=($(compgen -W "$next" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _beamclaw beamclaw
`;

/** Options may follow operands, so there the pattern is open; the longest command comes first. */
function bashCase([command, next]: Words[number]): string {
  const open = next.some((word) => word.startsWith("-")) ? "*" : "";
  return `    "${command}"${open}) next="${next.join(" ")}" ;;`;
}

const zsh = (words: Words): string =>
  `# source <(beamclaw completion zsh)\nautoload -U +X bashcompinit && bashcompinit\n${bash(words)}`;

const fish = (words: Words): string =>
  `# beamclaw completion fish | source\ncomplete -c beamclaw -f\n${words.flatMap(fishLines).join("\n")}\n`;

function fishLines([command, next]: Words[number]): readonly string[] {
  const [first = "", second = ""] = command.split(" ");
  const seen = [first, second]
    .filter((word) => word !== "")
    .map((word) => `__fish_seen_subcommand_from ${word}`);
  const deeper = next.filter((word) => !word.startsWith("-"));
  // Sub-commands are offered until one of them has been typed.
  const guard =
    deeper.length > 0 && first !== "" ? [`not __fish_seen_subcommand_from ${deeper.join(" ")}`] : [];
  const condition = first === "" ? "__fish_use_subcommand" : [...seen, ...guard].join("; and ");
  return next.map((word) => {
    const what = word.startsWith("--") ? `-l ${word.slice(2)}` : `-a ${word}`;
    return `complete -c beamclaw -n '${condition}' ${what}`;
  });
}

const scripts: ReadonlyMap<string, (words: Words) => string> = new Map([
  ["bash", bash],
  ["zsh", zsh],
  ["fish", fish],
]);
