#!/usr/bin/env node
// Runs the binary that one of the optional dependencies brings.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { isatty } = require("node:tty");

const windows = process.platform === "win32";
let weir;
try {
  weir = require.resolve(
    `@weirhq/weir-${process.platform}-${process.arch}/weir${windows ? ".exe" : ""}`,
  );
} catch {
  console.error(
    `@weirhq/weir has no binary for ${process.platform} ${process.arch}, or was installed without optional dependencies. ` +
      "Build it: https://github.com/weirhq/weir#start",
  );
  process.exit(1);
}
const child = spawn(weir, process.argv.slice(2), { stdio: "inherit" });
const signals = ["SIGTERM", "SIGHUP"];
// A terminal sends Ctrl-C to the child too, which ends at once if it gets two.
if ([0, 1, 2].some((fd) => isatty(fd))) process.on("SIGINT", () => {});
else signals.push("SIGINT");
// Windows has no others. https://nodejs.org/api/process.html#signal-events
if (!windows) signals.push("SIGUSR1", "SIGUSR2");
for (const signal of signals) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (err) => {
  console.error(err.message);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
