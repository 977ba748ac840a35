// Writes a generated file. With --check, reports a file that is out of date
// instead.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const check = process.argv.includes("--check");

export function settle(url, text) {
  const file = fileURLToPath(url);
  let before = null;
  try {
    before = readFileSync(file, "utf8");
  } catch {
    // A file that does not exist yet is out of date as well.
  }
  if (before === text) return;
  if (check) {
    console.error(`${file} is stale: run \`npm run generate\` in bindings/typescript`);
    process.exitCode = 1;
    return;
  }
  mkdirSync(new URL(".", url), { recursive: true });
  writeFileSync(file, text);
}
