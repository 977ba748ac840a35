// Runs the unit tests in test/*.test.ts: bundles each into a temporary
// directory, then `node --test`.

import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const TESTS = fileURLToPath(new URL("../test/", import.meta.url));
const out = mkdtempSync(join(tmpdir(), "touchmark-ui-test-"));
try {
  const names = readdirSync(TESTS).filter((name) => name.endsWith(".test.ts"));
  await build({
    entryPoints: names.map((name) => join(TESTS, name)),
    outdir: out,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node18",
    logLevel: "warning",
  });
  const ran = spawnSync(process.execPath, ["--test", ...names.map((name) => join(out, name.replace(/\.ts$/, ".mjs")))], { stdio: "inherit" });
  process.exitCode = ran.status ?? 1;
} finally {
  rmSync(out, { recursive: true, force: true });
}
