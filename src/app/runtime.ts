/**
 * What the configuration makes of providers, tools and agents. Built anew when the configuration is read again, and
 * swapped as a whole: a run that works keeps what it has started with until its next model call.
 */
import type { AgentProfile, LoopSettings } from "../agent/run-services.ts";
import type { Workspaces } from "../agent/workspace.ts";
import { Prompt } from "../agent/prompt.ts";
import type { Provider } from "../agent/provider.ts";
import { type AgentName, asId } from "../domain/ids.ts";
import type { Clock } from "../kernel/clock.ts";
import { createProvider } from "../providers/create-provider.ts";
import { builtinTools, processRunner } from "../tools/builtin-tools.ts";
import { ToolRegistry } from "../tools/registry.ts";
import type { LoadedConfig } from "./config.ts";
import { type ChosenProvider, chooseProvider } from "./config-rules.ts";
import type { Env, Home } from "./home.ts";
