// Compiles the extension, with what it needs of the client, and packs it:
//
//   node tools/package.mjs [FILE]    touchmark.vsix unless named
//
// Compiler and packer are this directory's (`npm ci`), or those in
// TOUCHMARK_TOOLS. The same sources give the same bytes.

import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const own = fileURLToPath(new URL("../", import.meta.url));
const out = resolve(process.argv[2] ?? join(own, "touchmark.vsix"));
const tools = join(process.env.TOUCHMARK_TOOLS ?? own, "node_modules");

/** Runs a tool on what is to be packed. Returns its output; errors are shown. */
function run(tool, ...given) {
  const env = { SOURCE_DATE_EPOCH: "315532800", ...process.env };
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(tools, tool), ...given], { cwd: packed, env, encoding: "utf8" });
  if (status !== 0) throw new Error(`${tool}: ${stdout}${stderr}`);
  return stdout + stderr;
}

const packed = mkdtempSync(join(tmpdir(), "tmvsix"));
try {
  for (const name of ["package.json", "README.md", "media"]) {
    cpSync(join(own, name), join(packed, basename(name)), { recursive: true });
  }
  run("typescript/bin/tsc", "-p", own, "--outDir", join(packed, "dist"), "--typeRoots", join(tools, "@types"));
  // A package has one file with its licence: the user's choice of two.
  const licences = ["MIT", "APACHE"].map((name) => readFileSync(join(own, `../../LICENSE-${name}`), "utf8").trim());
  writeFileSync(join(packed, "LICENSE.txt"), `touchmark is licensed under either of these licences, at your option.\n\n${licences.join(`\n\n${"-".repeat(78)}\n\n`)}\n`);
  // Once the manifest names the repository, the README's pictures are found there.
  const { repository } = JSON.parse(readFileSync(join(packed, "package.json"), "utf8"));
  const unnamed = repository ? [] : ["--allow-missing-repository", "--no-rewrite-relative-links"];
  const printed = run("@vscode/vsce/vsce", "package", "--no-dependencies", ...unnamed, "--out", out);
  if (/WARN/.test(printed)) throw new Error(printed);
} finally {
  rmSync(packed, { recursive: true, force: true });
}
console.log(out);
