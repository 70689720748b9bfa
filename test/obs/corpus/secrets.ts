/**
 * Secrets of our own making. Each is put together at run time from a prefix and a body, so that no scanner of
 * repositories takes this file for a leak. None of them ever opened anything.
 */
export interface PlantedSecret {
  readonly family: string;
  readonly secret: string;
  /** Leading characters that are no secret by themselves: a bot's number. */
  readonly publicPrefix: number;
}

/** `length` characters of `alphabet`, the same every time for the same `salt`. */
function body(length: number, alphabet: string, salt: number): string {
  let state = (salt * 2_654_435_761) >>> 0;
  let text = "";
  while (text.length < length) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    text += alphabet[(state >>> 8) % alphabet.length] ?? "";
  }
  return text;
}

const DIGITS = "0123456789";
const LOWER = "abcdefghijklmnopqrstuvwxyz";
const HEX = `${DIGITS}abcdef`;
const ALNUM = `${DIGITS}${LOWER}${LOWER.toUpperCase()}`;
const URL_SAFE = `${ALNUM}-_`;

/** Family, pieces of its shape: text as it is, or a length with its alphabet. */
const shapes: readonly (readonly [string, ...(string | readonly [number, string])[]])[] = [
  ["OpenAI legacy", "sk", "-", [48, ALNUM]],
  ["OpenAI project", "sk", "-proj-", [74, URL_SAFE]],
  ["OpenAI service account", "sk", "-svcacct-", [60, URL_SAFE]],
  ["Anthropic", "sk", "-ant-api03-", [93, URL_SAFE]],
  ["OpenRouter", "sk", "-or-v1-", [64, HEX]],
  ["Groq", "gsk", "_", [52, ALNUM]],
  ["xAI", "xai", "-", [80, ALNUM]],
  ["Hugging Face", "hf", "_", [34, ALNUM]],
  ["Perplexity", "pplx", "-", [48, ALNUM]],
  ["Brave", "BS", "A", [28, URL_SAFE]],
  ["Tavily", "tvly", "-", [32, ALNUM]],
  ["beamclaw", "beamclaw", "_", [43, URL_SAFE]],
  ["GitHub personal", "gh", "p_", [36, ALNUM]],
  ["GitHub OAuth", "gh", "o_", [36, ALNUM]],
  ["GitHub user to server", "gh", "u_", [36, ALNUM]],
  ["GitHub server to server", "gh", "s_", [36, ALNUM]],
  ["GitHub refresh", "gh", "r_", [76, ALNUM]],
  ["GitHub fine-grained", "github", "_pat_", [22, ALNUM], "_", [59, ALNUM]],
  ["GitLab", "gl", "pat-", [20, URL_SAFE]],
  ["npm", "np", "m_", [36, ALNUM]],
  ["PyPI", "py", "pi-AgEIcHlwaS5vcmc", [120, URL_SAFE]],
  ["Docker Hub", "dckr", "_pat_", [27, URL_SAFE]],
  ["Slack bot", "xo", "xb-", [12, DIGITS], "-", [12, DIGITS], "-", [24, ALNUM]],
  ["Slack user", "xo", "xp-", [12, DIGITS], "-", [12, DIGITS], "-", [32, HEX]],
  ["Slack app", "xa", "pp-1-A", [10, ALNUM], "-", [13, DIGITS], "-", [64, HEX]],
  ["AWS access key id", "AK", "IA", [16, `${LOWER.toUpperCase()}234567`]],
  ["AWS temporary key id", "AS", "IA", [16, `${LOWER.toUpperCase()}234567`]],
  ["Google API", "AI", "za", [35, URL_SAFE]],
  ["Google OAuth", "ya", "29.a0", [60, URL_SAFE]],
  ["Telegram bot", [10, "123456789"], ":A", "A", [33, URL_SAFE]],
  ["Stripe live", "sk", "_live_", [24, ALNUM]],
  ["Stripe restricted", "rk", "_live_", [24, ALNUM]],
  ["Stripe webhook", "wh", "sec_", [32, ALNUM]],
  ["SendGrid", "S", "G.", [22, URL_SAFE], ".", [43, URL_SAFE]],
  ["Twilio API key", "S", "K", [32, HEX]],
  ["Discord bot", "M", [25, ALNUM], ".", [6, ALNUM], ".", [38, URL_SAFE]],
  ["DigitalOcean", "dop", "_v1_", [64, HEX]],
  ["Databricks", "da", "pi", [32, HEX]],
  ["Shopify", "shp", "at_", [32, HEX]],
  ["Linear", "lin", "_api_", [40, ALNUM]],
  ["Vault", "hv", "s.", [90, URL_SAFE]],
  ["JWT", "ey", "JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.ey", "J", [60, URL_SAFE], ".", [43, URL_SAFE]],
];

export const plantedSecrets: readonly PlantedSecret[] = shapes.flatMap(([family, ...pieces]) =>
  [1, 2, 3].map((round) => ({
    family,
    publicPrefix: family === "Telegram bot" ? 10 : 0,
    secret: pieces
      .map((piece, index) =>
        typeof piece === "string" ? piece : body(piece[0], piece[1], round * 97 + index),
      )
      .join(""),
  })),
);

/** Where secrets turn up. `@` stands for the secret. */
export const surroundings: readonly string[] = [
  "@",
  "Here it is: @",
  "use @, please.",
  "(@)",
  '"@"',
  "`@`",
  '{"note":"first line\\n@\\nlast line"}',
  '{"headers":{"x":["@"]}}',
  "https://example.test/path?q=1&k=@#top",
  "https://example.test/?next=%2F%3Fk%3D@",
  "https://@@host.test/repo.git".replace("@@", "@\u0040"),
  "KEY=@",
  "curl -H 'X-Custom: @' https://example.test",
  "a\n\t- @\nb",
  "<td>@</td>",
  "https://@:x-oauth-basic\u0040host.test/repo.git",
  "curl -u @:x https://host.test",
  "error: 401 for @ at line 3",
];

/** Values that only their name gives away. */
export const plainValues: readonly string[] = [
  "hunter2hunter2",
  "S3cr3t-Pa55word",
  "Xk9mQ2vLp0wZ",
  "0d1c2b3a4f5e6978",
  "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzFAKEKEYz",
];

/** How names and values are written. `@` stands for the value. */
export const notations: readonly string[] = [
  "password=@",
  "password: @",
  "password = @",
  'password = "@"',
  "password='@'",
  "The password: @ (do not share)",
  "DB_PASSWORD=@",
  "export SECRET_KEY=@",
  'export API_TOKEN="@"',
  "OPENAI_API_KEY=@ node app.js",
  '{"api_key":"@"}',
  '{ "apiKey" : "@" }',
  '{"a":{"client_secret":"@"}}',
  '"{\\"access_token\\":\\"@\\"}"',
  '"{\\\\\\"access_token\\\\\\":\\\\\\"@\\\\\\"}"',
  "{'auth_token': '@'}",
  "secret_key: @\n",
  "  - name: x\n    password: '@'\n",
  "X-Api-Key: @",
  "x-auth-token: @",
  "Authorization: Bearer @",
  "authorization: Basic @",
  "Authorization: token @",
  "Authorization: @",
  '-H "Authorization: Bearer @"',
  "Proxy-Authorization: Basic @",
  "https://example.test/?access_token=@",
  "https://example.test/?a=b&api_key=@&c=d",
  "postgres://app:@\u0040db.test:5432/main",
  "https://:@\u0040example.test/",
  "AWS_SECRET_ACCESS_KEY=@",
  "aws_secret_access_key = @",
  "Server=db;User=sa;Password=@;Encrypt=true",
  "mysql --password=@ -u root",
  "app --api-key @ --verbose",
  "curl -u admin:@ https://example.test",
  "<password>@</password>",
  'config["password"] = "@"',
  "$config['db_password'] = '@';",
  "'secret' => '@'",
  'const token: string = "@";',
  'password: str = "@"',
  'token := "@"',
  "//registry.test/:_authToken=@",
  "Set-Cookie: session=@; HttpOnly",
  "**API key:** @",
  "API key: `@`",
  "line one\\npassword: @\\nline three",
  "user=x\\u0026token=@",
];

const pemBody = Array.from({ length: 6 }, (_, line) => body(64, `${ALNUM}+/`, line + 11)).join("\n");
const dashes = "-".repeat(5);

/** Private keys as files, inside JSON, and cut off. */
export const keyBlocks: readonly string[] = ["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""].flatMap((kind) => {
  const begin = `${dashes}BEGIN ${kind}PRIVATE KEY${dashes}`;
  const end = `${dashes}END ${kind}PRIVATE KEY${dashes}`;
  return [
    `${begin}\n${pemBody}\n${end}\n`,
    JSON.stringify({ key: `${begin}\n${pemBody}\n${end}\n` }),
    `${begin}\r\n${pemBody.replaceAll("\n", "\r\n")}`,
    `PRIVATE="${begin}\\n${pemBody.replaceAll("\n", "\\n")}\\n${end}"`,
  ];
});
export const keyBlockBody = pemBody;
