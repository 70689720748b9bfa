import { familyRules } from "./families.ts";
import { pairRule, schemeRule } from "./pairs.ts";
import {
  curlUserRule,
  discordRule,
  jwtRule,
  keyBlockRule,
  telegramRule,
  userinfoRule,
  webhookRule,
} from "./structures.ts";
import type { Rule, Verdict } from "./verdict.ts";

/**
 * What makes the scanner stop and ask a rule. Most text holds no trigger at all. A trigger must consist of
 * word characters, preceded or followed by at most `TRIGGER_EDGE` others: then it always shows in what the
 * stream scrubber has not passed on yet.
 */
export const TRIGGER_EDGE = 4;

const names = ["pass", "pwd", "secret", "token", "key", "auth", "credential", "cookie", "_pw"];
const schemes = ["bearer", "basic"];

const fixedRules: ReadonlyMap<string, Rule> = new Map([
  ...familyRules,
  ...names.map((word): [string, Rule] => [word, pairRule]),
  ...schemes.map((word): [string, Rule] => [word, schemeRule]),
  ["-----BEGIN", keyBlockRule],
  ["eyJ", jwtRule],
  ["://", userinfoRule],
  [":\\/\\/", userinfoRule],
  ["/services/", webhookRule],
  ["/webhooks/", webhookRule],
]);

const anyCase = (word: string): string =>
  word.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
const literally = (word: string): string => word.replace(/[.\\/]/g, "\\$&");

const source = [
  ...[...fixedRules.keys()].filter((word) => !names.includes(word) && !schemes.includes(word)).map(literally),
  ...[...names, ...schemes].map(anyCase),
  "(?<![\\w-])(?:-u|--user)",
  "(?<=[?&])(?:[sS]ig|code|X-Amz-Sig)",
  "(?<!\\d)\\d{6,12}:",
  "[MNO][\\w-]{22,28}\\.",
].join("|");

export interface Trigger {
  readonly at: number;
  readonly word: string;
}

/** A search for triggers; holds no state between calls. */
export function createTriggerSearch(): (text: string, from: number) => Trigger | null {
  const pattern = new RegExp(source, "g");
  return (text, from) => {
    pattern.lastIndex = from;
    const match = pattern.exec(text);
    return match === null ? null : { at: match.index, word: match[0] };
  };
}

/** Asks the rule that the trigger belongs to. */
export function judge(text: string, { at, word }: Trigger, final: boolean): Verdict {
  return (fixedRules.get(word) ?? ruleOfPattern(word))(text, at, word, final);
}

function ruleOfPattern(word: string): Rule {
  if (word.startsWith("-")) return curlUserRule;
  if (word.endsWith(":")) return telegramRule;
  if (word.endsWith(".")) return discordRule;
  return fixedRules.get(word.toLowerCase()) ?? pairRule;
}
