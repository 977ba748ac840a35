#!/usr/bin/env node
// Runs the program of the name by which this is called. Both programs are in the
// package for this system and processor.
"use strict";

const { spawn } = require("node:child_process");
const { basename } = require("node:path");

const PACKAGES = {
  "linux arm64": "@touchmark/linux-arm64",
  "linux x64": "@touchmark/linux-x64",
};

function fail(message) {
  console.error(`touchmark: ${message}`);
  process.exit(1);
}

function program() {
  const system = `${process.platform} ${process.arch}`;
  const name = PACKAGES[system];
  if (name === undefined) {
    fail(`there is no program for ${system}. It runs on Linux on x64 and arm64, also in WSL and in containers.`);
  }
  try {
    const hook = "touchmark-hook";
    const called = basename(process.argv[1]) === hook ? hook : "touchmark";
    return require.resolve(`${name}/bin/${called}`);
  } catch {
    fail(`the package ${name} is not installed. Install touchmark again, on this system and without --omit=optional.`);
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });
// A terminal sends these to the program as well, which decides when it exits.
for (const signal of ["SIGINT", "SIGQUIT"]) process.on(signal, () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => fail(error.message));
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
