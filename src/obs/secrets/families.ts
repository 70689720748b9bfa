import { isAlnum, isDigit, isWord, startsToken } from "./characters.ts";
import { more, pass, redact, runEnd, prefixedTail, type Rule, type Tail } from "./verdict.ts";

/**
 * Tokens that betray themselves by a prefix. `min` is the least number of characters after it; a body made of
 * ordinary words (`sk-learn-some-long-page-name`) is left alone unless the prefix itself is unmistakable.
 */
interface Family {
  readonly prefixes: string;
  readonly min: number;
  readonly body: (code: number) => boolean;
  /** Exact length of the body, for prefixes that ordinary text has too. */
  readonly exact?: boolean;
  /** For prefixes that base64 has by chance: a slash or plus before it is no boundary. */
  readonly notInBase64?: boolean;
}

const isHexLower = (code: number): boolean => isDigit(code) || (code >= 97 && code <= 102);
const isUpperOrDigit = (code: number): boolean => isDigit(code) || (code >= 65 && code <= 90);
const isWordOrDot = (code: number): boolean => isWord(code) || code === 46;

/** Prefixes as their issuers document them. */
const families: readonly Family[] = [
  // OpenAI, Anthropic, OpenRouter, DeepSeek and the many that imitate them
  { prefixes: "sk-", min: 20, body: isWord },
  // Other model and search providers: Groq, xAI, Perplexity, NVIDIA, Hugging Face, Replicate, Tavily, Brave
  { prefixes: "gsk_ hf_ api_org_ r8_ fw_", min: 20, body: isAlnum },
  { prefixes: "xai- pplx- nvapi- tvly- csk-", min: 20, body: isWord },
  { prefixes: "BSA", min: 24, body: isWord, notInBase64: true },
  // Our own
  { prefixes: "beamclaw_", min: 32, body: isWord },
  // Code hosts and package registries
  { prefixes: "ghp_ gho_ ghu_ ghs_ ghr_ npm_", min: 20, body: isAlnum },
  { prefixes: "github_pat_", min: 20, body: isWord },
  { prefixes: "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- gloas-", min: 16, body: isWordOrDot },
  { prefixes: "pypi- dckr_pat_ ATATT3 ATCTT3 lin_api_ ntn_ figd_ PMAK-", min: 24, body: isWord },
  // Chat and mail
  { prefixes: "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxd- xoxc- xapp-", min: 10, body: isWord },
  { prefixes: "SG.", min: 40, body: isWordOrDot },
  { prefixes: "SK", min: 32, body: isHexLower, exact: true },
  // Clouds and infrastructure
  { prefixes: "AKIA ASIA ABIA ACCA", min: 16, body: isUpperOrDigit, exact: true },
  { prefixes: "AIza", min: 30, body: isWord },
  { prefixes: "ya29. GOCSPX-", min: 20, body: isWordOrDot },
  { prefixes: "dop_v1_ doo_v1_ dor_v1_ dapi shpat_ shpca_ shppa_ shpss_", min: 32, body: isHexLower },
  {
    prefixes: "hvs. hvb. dp.pt. glsa_ sbp_ sntrys_ NRAK- HRKU- pscale_tkn_ AGE-SECRET-KEY-1",
    min: 20,
    body: isWordOrDot,
  },
  // Payments
  { prefixes: "sk_live_ sk_test_ rk_live_ rk_test_ whsec_ sq0atp- sq0csp-", min: 16, body: isWord },
];

/** Prefix → rule, for the scanner's dispatch. */
export const familyRules: ReadonlyMap<string, Rule> = new Map(
  families.flatMap((family) => {
    const ruleFor = (prefix: string): Rule => ruleOf(family, prefixedTail(prefix.length, family.body));
    return family.prefixes.split(" ").map((prefix): [string, Rule] => [prefix, ruleFor(prefix)]);
  }),
);

/** Characters of a body that are looked at; longer than any `min`. */
const WINDOW = 80;

function ruleOf(family: Family, tail: Tail): Rule {
  return (text, at, prefix, final) => {
    if (!startsToken(text, at)) return pass;
    if (family.notInBase64 === true && /[A-Za-z0-9][+/]$/.test(text.slice(Math.max(0, at - 2), at)))
      return pass;
    const start = at + prefix.length;
    const end = runEnd(text, start, family.body, start + WINDOW);
    const length = end - start;
    if (end === text.length && !final && length < WINDOW) return more(at);
    if (family.exact === true && (length !== family.min || isAlnum(text.charCodeAt(end)))) return pass;
    if (length < family.min || !isTokenBody(text.slice(start, end))) return pass;
    return redact(at, tail);
  };
}

/** A digit, a capital, or a piece longer than words are: enough to tell a token from a hyphenated phrase. */
const isTokenBody = (body: string): boolean => /[0-9A-Z]|[a-z]{16}/.test(body);
