// Loads the built program; only ever required under a Node that can run it.
"use strict";
const fs = require("node:fs");
const { enableCompileCache } = require("node:module");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

/** @param {string} root the package's folder */
module.exports = async function launch(root) {
  const dist = path.join(root, "dist");
  if (!fs.existsSync(path.join(dist, "cli.js"))) {
    process.stderr.write(`beamclaw: not built yet. Run \`npm run build\` in ${root}.\n`);
    process.exitCode = 1;
    return;
  }
  // Beside the code that it belongs to, never in a folder that others may write; read-only installations go without.
  enableCompileCache(path.join(dist, ".compile-cache"));
  endWithReader(process.stdout);
  endWithReader(process.stderr);
  const load = (name) => import(pathToFileURL(path.join(dist, name)).href);
  try {
    const { main } = await load("cli.js");
    process.exitCode = await main({
      argv: process.argv.slice(2),
      env: process.env,
      cwd: process.cwd(),
      stdin: process.stdin,
      stdout: process.stdout,
      stderr: process.stderr,
      loadDaemon: () => load("daemon.js"),
    });
  } catch (error) {
    process.stderr.write(`beamclaw: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
};

/**
 * A reader that went away (`beamclaw logs | head`) is the ordinary end of a command. A daemon goes on without
 * somebody who reads its output.
 */
function endWithReader(stream) {
  if (process.argv[2] === "start") stream.on("error", () => {});
  else stream.on("error", (error) => process.exit(error.code === "EPIPE" ? 0 : 1));
}
