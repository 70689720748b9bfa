import type { Invocation } from "./invocation.ts";

/** A command as data: the program, the completions and the check of the documentation are made from this. */
export interface CommandSpec {
  /** Name and operands: `show <name>`; `<x>` must be given, `[x]` may be. */
  readonly usage: string;
  readonly about: string;
  readonly options?: readonly OptionSpec[];
  readonly commands?: readonly CommandSpec[];
  /** Returns the exit code. The modules behind load only when the command runs. */
  readonly run?: (invocation: Invocation) => Promise<number>;
}

/** `repeated` options collect their values. */
export interface OptionSpec {
  readonly flags: string;
  readonly about: string;
  readonly repeated?: true;
}

const json: OptionSpec = { flags: "--json", about: "print JSON" };
const config: OptionSpec = {
  flags: "--config <file>",
  about: "use this file instead of the home's config.yaml",
};
const limit: OptionSpec = { flags: "--limit <n>", about: "at most so many (default 50)" };
const yes: OptionSpec = { flags: "-y, --yes", about: "do not ask whether you are sure" };

const daemon = () => import("./daemon-commands.ts");
const agents = () => import("./agent-commands.ts");
const records = () => import("./record-commands.ts");
const tokens = () => import("./token-commands.ts");
const configs = () => import("./config-commands.ts");

const daemonCommands: readonly CommandSpec[] = [
  {
    usage: "start",
    about: "start the daemon",
    options: [
      { flags: "-f, --foreground", about: "stay in this terminal until Ctrl-C" },
      config,
      { flags: "--ready-fd <n>", about: "(internal) tell this file descriptor when ready" },
    ],
    run: async (invocation) => (await daemon()).start(invocation),
  },
  {
    usage: "stop",
    about: "stop the daemon; open turns end first",
    run: async (it) => (await daemon()).stop(it),
  },
  {
    usage: "restart",
    about: "stop the daemon if it runs, and start it",
    options: [config],
    run: async (invocation) => (await daemon()).restart(invocation),
  },
  { usage: "reload", about: "apply a changed configuration", run: async (it) => (await daemon()).reload(it) },
  {
    usage: "status",
    about: "show what the daemon does",
    options: [json],
    run: async (invocation) => (await daemon()).status(invocation),
  },
  {
    usage: "logs",
    about: "show the daemon's log",
    options: [
      { flags: "-f, --follow", about: "go on as lines come" },
      { flags: "-n, --lines <n>", about: "so many lines (default 100)" },
      json,
    ],
    run: async (invocation) => (await import("./log-command.ts")).logs(invocation),
  },
];

const conversationCommands: readonly CommandSpec[] = [
  {
    usage: "send <text>",
    about: "send one message and print the answer; - reads it from standard input",
    options: [
      {
        flags: "--agent <name>",
        about: "the agent to talk to (default: BEAMCLAW_AGENT, else the configured one)",
      },
      { flags: "--session <id>", about: "the conversation to go on with" },
      json,
    ],
    run: async (invocation) => (await import("./send-command.ts")).send(invocation),
  },
  {
    usage: "agent",
    about: "agents and their workspaces",
    commands: [
      {
        usage: "create <name>",
        about: "make an agent",
        options: [json],
        run: async (it) => (await agents()).create(it),
      },
      { usage: "list", about: "list agents", options: [json], run: async (it) => (await agents()).list(it) },
      {
        usage: "show <name>",
        about: "print its files",
        options: [json],
        run: async (it) => (await agents()).show(it),
      },
      {
        usage: "delete <name>",
        about: "delete it for good",
        options: [yes],
        run: async (it) => (await agents()).remove(it),
      },
      {
        usage: "rehatch <name>",
        about: "put its files back to the templates and wipe its daily logs",
        options: [yes],
        run: async (invocation) => (await agents()).rehatch(invocation),
      },
    ],
  },
  {
    usage: "sessions",
    about: "conversations",
    commands: [
      {
        usage: "list",
        about: "newest first",
        options: [limit, json],
        run: async (it) => (await records()).listSessions(it),
      },
      {
        usage: "show <id>",
        about: "print the end of a conversation",
        options: [limit, json],
        run: async (invocation) => (await records()).showSession(invocation),
      },
      {
        usage: "export <id>",
        about: "every message as a line of JSON",
        run: async (it) => (await records()).exportSession(it),
      },
      {
        usage: "delete <id>",
        about: "delete it for good",
        options: [yes],
        run: async (it) => (await records()).deleteSession(it),
      },
    ],
  },
  {
    usage: "runs",
    about: "units of work",
    commands: [
      {
        usage: "list",
        about: "newest first",
        options: [{ flags: "--state <states>", about: "such as running,waiting" }, limit, json],
        run: async (invocation) => (await records()).listRuns(invocation),
      },
      {
        usage: "show <id>",
        about: "everything about one",
        options: [json],
        run: async (it) => (await records()).showRun(it),
      },
      { usage: "cancel <id>", about: "stop it", run: async (it) => (await records()).cancelRun(it) },
    ],
  },
  {
    usage: "approvals",
    about: "questions that wait for a person",
    commands: [
      {
        usage: "list",
        about: "open ones",
        options: [{ flags: "--all", about: "also those that are decided" }, limit, json],
        run: async (invocation) => (await records()).listApprovals(invocation),
      },
      {
        usage: "approve <id>",
        about: "allow the call once",
        run: async (it) => (await records()).decide(it, "approve"),
      },
      {
        usage: "deny <id>",
        about: "refuse the call",
        run: async (it) => (await records()).decide(it, "deny"),
      },
      {
        usage: "always <id>",
        about: "allow this call and its like in the session",
        run: async (invocation) => (await records()).decide(invocation, "always"),
      },
    ],
  },
];

const operationCommands: readonly CommandSpec[] = [
  {
    usage: "token",
    about: "access tokens",
    commands: [
      {
        usage: "create <name>",
        about: "make one; its secret is printed once",
        options: [
          {
            flags: "--scope <scope>",
            about: "chat, tools, metrics, approvals, impersonate, admin; may be repeated",
            repeated: true,
          },
          { flags: "--agent <name>", about: "only for this agent" },
          { flags: "--expires <days>", about: "ends after so many days" },
          json,
        ],
        run: async (invocation) => (await tokens()).create(invocation),
      },
      { usage: "list", about: "list tokens", options: [json], run: async (it) => (await tokens()).list(it) },
      {
        usage: "revoke <name>",
        about: "refuse it from now on",
        run: async (it) => (await tokens()).revoke(it),
      },
    ],
  },
  {
    usage: "config",
    about: "the configuration",
    commands: [
      {
        usage: "check",
        about: "name all mistakes",
        options: [config, json],
        run: async (it) => (await configs()).check(it),
      },
      {
        usage: "show",
        about: "print what is in force",
        options: [config, json],
        run: async (it) => (await configs()).show(it),
      },
      { usage: "schema", about: "print the JSON Schema", run: async (it) => (await configs()).schema(it) },
    ],
  },
  {
    usage: "backup <file>",
    about: "copy the database while the daemon runs",
    run: async (invocation) => (await daemon()).backup(invocation),
  },
  {
    usage: "doctor",
    about: "look for what is wrong or switched off",
    options: [config, json],
    run: async (invocation) => (await import("./doctor-command.ts")).doctor(invocation),
  },
  {
    usage: "completion <shell>",
    about: "print the completions of bash, zsh or fish",
    run: async (invocation) => (await import("./completion-command.ts")).completion(invocation, commandTable),
  },
  {
    usage: "version",
    about: "print the version",
    run: async ({ terminal, surroundings }) => {
      terminal.line(surroundings.installation.readVersion());
      return 0;
    },
  },
];

export const commandTable: readonly CommandSpec[] = [
  ...daemonCommands,
  ...conversationCommands,
  ...operationCommands,
];
