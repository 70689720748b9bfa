import { Command, CommanderError, Option } from "commander";
import { type CommandSpec, commandTable } from "./command-table.ts";
import { Invocation, type Surroundings } from "./invocation.ts";

/** Usage mistakes (missing operand, unknown command or option). */
const USAGE = 2;

/** Runs one command line. Returns its exit code; throws only what commands throw. */
export async function runProgram(surroundings: Surroundings, argv: readonly string[]): Promise<number> {
  const result = { code: 0 };
  const program = buildProgram(surroundings, (code) => {
    result.code = code;
  });
  if (argv.length === 0) {
    surroundings.terminal.write(program.helpInformation());
    return 0;
  }
  try {
    await program.parseAsync([...argv], { from: "user" });
    return result.code;
  } catch (error) {
    // Commander has already printed what it found; help and version are no mistakes.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
    throw error;
  }
}

function buildProgram(surroundings: Surroundings, finish: (code: number) => void): Command {
  const { installation } = surroundings;
  const program = new Command("beamclaw")
    .description("AI agents behind an OpenAI-compatible endpoint, with tools under your approval.")
    .version(installation.readVersion(), "-V, --version", "print the version")
    .helpCommand("help [command]", "explain a command")
    .addHelpText(
      "after",
      "\nExit codes: 0 done, 1 failed, 2 usage, 69 daemon not reachable, 78 configuration.",
    );
  const add = (parent: Command, spec: CommandSpec): void => {
    const command = parent.command(spec.usage).description(spec.about);
    settle(command, surroundings);
    for (const option of spec.options ?? []) command.addOption(optionOf(option));
    for (const child of spec.commands ?? []) add(command, child);
    const { run } = spec;
    if (run !== undefined) {
      command.action(async (...given: unknown[]) => {
        // Commander calls back with the operands one by one, then the options, then the command.
        const operands = given.slice(0, -2).filter((operand) => typeof operand === "string");
        finish(await run(new Invocation(surroundings, operands, command.opts())));
      });
    }
  };
  settle(program, surroundings);
  for (const spec of commandTable) add(program, spec);
  return program;
}

/** Commander neither ends the process nor writes past our streams, and refuses what it does not know. */
function settle(command: Command, { terminal }: Surroundings): void {
  command
    .exitOverride()
    .allowExcessArguments(false)
    .configureOutput({
      writeOut: (text) => {
        terminal.write(text);
      },
      writeErr: (text) => {
        terminal.streams.stderr.write(text);
      },
      outputError: (text, write) => {
        write(`beamclaw: ${text.replace(/^error: /, "")}`);
      },
    })
    .showHelpAfterError("See `beamclaw help`.");
}

function optionOf(spec: NonNullable<CommandSpec["options"]>[number]): Option {
  const option = new Option(spec.flags, spec.about);
  if (spec.repeated === true) {
    option.argParser((value, former: unknown) => [...(Array.isArray(former) ? former : []), value]);
  }
  return spec.about.startsWith("(internal)") ? option.hideHelp() : option;
}
