import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import test from "node:test";
import { fileURLToPath } from "node:url";

for (const script of ["generate", "bundle"]) {
  test(`what tools/${script}.mjs writes is current`, () => {
    const path = fileURLToPath(new URL(`../tools/${script}.mjs`, import.meta.url));
    const { status, stderr } = spawnSync(process.execPath, [path, "--check"], { encoding: "utf8" });
    assert.equal(status, 0, stderr);
  });
}
