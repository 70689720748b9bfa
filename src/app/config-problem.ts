/** Something wrong in a configuration, said so that it can be mended without other documents. */
export interface ConfigProblem {
  /** Dotted path of the key, the name of an environment variable, or "" for the file as a whole. */
  readonly path: string;
  /** One-based; null where the value does not come from the file. */
  readonly line: number | null;
  /** What is wrong, and what would be allowed. Never shows a text value: it might be a secret. */
  readonly message: string;
  readonly cure: string;
}

export const dotted = (path: readonly PropertyKey[]): string => path.map(String).join(".");

/** One line: `gateway.port (line 3): is 70000, allowed is a whole number from 0 to 65535. Cure.` */
export function formatProblem(problem: ConfigProblem): string {
  const line = problem.line === null ? "" : ` (line ${problem.line})`;
  return `${problem.path === "" ? "file" : problem.path}${line}: ${problem.message}. ${problem.cure}`;
}
