/**
 * Context windows in tokens, by how a model's name begins, longest beginning first. Names come bare
 * (`gpt-4o-mini`) or with their vendor (`openai/gpt-4o-mini`), and both find the same entry. An entry's
 * `contextWindow` in the configuration goes before this table; a model that is not in it gets a cautious
 * default, because a window that is believed too large fails calls, one believed too small only shortens early.
 */
const WINDOWS: readonly (readonly [prefix: string, tokens: number])[] = [
  ["claude", 200_000],
  ["gpt-3.5", 16_385],
  ["gpt-4-turbo", 128_000],
  ["gpt-4.1", 1_047_576],
  ["gpt-4", 128_000],
  ["gpt-5", 400_000],
  ["gpt-oss", 131_072],
  ["chatgpt-4o", 128_000],
  ["o1-mini", 128_000],
  ["o1", 200_000],
  ["o3", 200_000],
  ["o4", 200_000],
  ["kimi", 256_000],
  ["gemini", 1_000_000],
  ["gemma-3", 128_000],
  ["deepseek", 128_000],
  ["grok-4-fast", 2_000_000],
  ["grok-4", 256_000],
  ["grok", 131_072],
  ["llama-4-maverick", 1_000_000],
  ["llama-4-scout", 1_000_000],
  ["llama-3", 128_000],
  ["mistral", 128_000],
  ["magistral", 40_000],
  ["devstral", 128_000],
  ["codestral", 256_000],
  ["qwen3-coder", 256_000],
  ["qwen", 128_000],
  ["glm", 128_000],
  ["minimax", 200_000],
  ["command", 128_000],
  ["nova", 300_000],
];

const DEFAULT_WINDOW = 128_000;

/** Tokens that `model` can take in and give out together. */
export function contextWindowOf(model: string): number {
  const bare = model.toLowerCase().replace(/^.*\//, "").replace(/^~/, "");
  const matches = WINDOWS.filter(([prefix]) => bare.startsWith(prefix));
  const longest = matches.reduce<readonly [string, number] | undefined>(
    (best, entry) => (best === undefined || entry[0].length > best[0].length ? entry : best),
    undefined,
  );
  return longest?.[1] ?? DEFAULT_WINDOW;
}
