// Preloaded into a process: when it ends, writes what it has loaded to the file that LOADED_FILES names.
"use strict";
const { registerHooks } = require("node:module");
const { writeFileSync } = require("node:fs");

const files = [];
registerHooks({
  load(url, context, next) {
    files.push(url);
    return next(url, context);
  },
});
process.on("exit", () => {
  writeFileSync(process.env.LOADED_FILES, JSON.stringify({ files, builtins: process.moduleLoadList }));
});
