import { array, constantFrom, oneof, string, type Arbitrary } from "fast-check";

/** Pieces of which triggers, notations and their near misses are made. */
const pieces = [
  ..."password token secret api_key Authorization cookie key auth PASSWORD API_TOKEN _KEY".split(" "),
  ...'= : :: := == => " \' ` \\ \\" \\\\\\" \\n \\u0026token= %3D < > </ { } ( ) [ ] , ; & ? @ / * # . - _ --'.split(
    " ",
  ),
  "Bearer ",
  "Basic ",
  " ",
  "  ",
  "\t",
  "\n",
  "\r\n",
  " = ",
  ": ",
  "curl -u ",
  "export ",
  ..."sk- ghp_ AKIA SG. BSA xoxb- hf_ sk_live_ eyJ beamclaw_ 123456789: AA :// -u ?key= ?sig= user host".split(
    " ",
  ),
  ..."a1b2c3d4e5f6g7h8i9j0 abcdefghijklmnopqrstuvwxyz ABCDEFGH12345678 hunter2 word str is 12".split(" "),
  ..."eyJhbGciOiJIUzI1NiJ9 .eyJzdWIiOiIxIn0 Mxxxxxxxxxxxxxxxxxxxxxxxx .abcdef. $VAR ${X} [REDACTED]".split(
    " ",
  ),
  "-----BEGIN RSA PRIVATE KEY-----",
  "-----END RSA PRIVATE KEY-----",
  "-----BEGIN",
  "MIIE",
  "oooo",
  "discord.com/api/webhooks/",
  "hooks.slack.com/services/",
];

/** Runs longer than any bound of the scanner. */
const long = ["x".repeat(70), "y1".repeat(150), "Z9_-".repeat(200), "MIIE+/".repeat(100), "w ".repeat(60)];

/** Text that looks like secrets as often as not, in every broken form. */
export const hostileText: Arbitrary<string> = array(
  oneof(
    { weight: 18, arbitrary: constantFrom(...pieces) },
    { weight: 1, arbitrary: constantFrom(...long) },
    { weight: 1, arbitrary: string({ maxLength: 6, unit: "binary" }) },
  ),
  { maxLength: 24 },
).map((parts) => parts.join(""));

/** True if eight characters of `secret` in a row are still in `text`. */
export function leaks(text: string, secret: string): boolean {
  for (let at = 0; at + 8 <= secret.length; at += 1) {
    if (text.includes(secret.slice(at, at + 8))) return true;
  }
  return false;
}
