// Writes a generated file, or with --check says that it is stale.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const check = process.argv.includes("--check");

export function settle(url, text) {
  const file = fileURLToPath(url);
  let before = null;
  try {
    before = readFileSync(file, "utf8");
  } catch {
    // Not there yet: as good as stale.
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
