/** What a file that is not text seems to be, by its first bytes. */
const SIGNATURES: readonly (readonly [string, string])[] = [
  ["89504e47", "PNG image"],
  ["ffd8ff", "JPEG image"],
  ["47494638", "GIF image"],
  ["25504446", "PDF document"],
  ["504b0304", "ZIP archive or office document"],
  ["1f8b", "gzip archive"],
  ["7f454c46", "ELF program"],
  ["53514c69746520666f726d6174", "SQLite database"],
];

/** Only so much is looked at; what follows a text-like start is shown with U+FFFD where it is invalid. */
const SNIFF_BYTES = 8_192;

/** Null for text: no NUL byte, and at most one in ten characters that is not UTF-8. */
export function binaryKind(bytes: Buffer): string | null {
  const start = bytes.subarray(0, SNIFF_BYTES);
  const hex = start.subarray(0, 16).toString("hex");
  const known = SIGNATURES.find(([signature]) => hex.startsWith(signature));
  if (known !== undefined && (start.includes(0) || invalidShare(start) > 0)) return known[1];
  if (start.includes(0)) return "binary data";
  return invalidShare(start) > 0.1 ? "binary data or text that is not UTF-8" : null;
}

function invalidShare(bytes: Buffer): number {
  const text = bytes.toString("utf8");
  if (text === "") return 0;
  return (text.length - text.replaceAll("\ufffd", "").length) / text.length;
}
