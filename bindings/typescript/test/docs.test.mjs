// Runs the snippets of docs/agents and of the README. Each block of `ts run` is type-checked and
// run in a separate workspace. A block of `text prints` after it is its
// expected output.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import test from "node:test";

import { compile, home } from "./typescript.mjs";
import { inWorld } from "./world.mjs";

/** The files in the snippets' workspaces. */
const FILES = { "src/parser.ts": "export const limit = 10;\n", "notes.txt": "one\n" };

// The snippets are inside the package, so that they can import it by its name.
const directory = join(home, "dist", "snippets");

function snippets(page) {
  const text = readFileSync(new URL(`../../../docs/agents/${page}`, import.meta.url), "utf8");
  const blocks = [...text.matchAll(/^```(\S*)[ ]*(.*)\n([\s\S]*?)^```$/gm)].map(([, language, about, body]) => ({ language, about, body }));
  return blocks.flatMap(({ language, about, body }, at) => {
    if (language !== "ts") return [];
    assert.equal(about, "run", `${page}: a snippet that is not run: ${body}`);
    const next = blocks[at + 1];
    return [{ name: `${basename(page, ".md")}-${at + 1}`, body, prints: next?.about === "prints" ? next.body : undefined }];
  });
}

const all = ["typescript.md", "opencode.md", "../../bindings/typescript/README.md"].flatMap(snippets);
rmSync(directory, { recursive: true, force: true });
mkdirSync(directory, { recursive: true });
for (const { name, body } of all) writeFileSync(join(directory, `${name}.mts`), body);

test("the snippets of docs/agents are there and type-check", () => {
  assert.ok(all.length > 3);
  compile(all.map(({ name }) => join(directory, `${name}.mts`)));
});

for (const { name, prints } of all) {
  test(`docs/agents: ${name}`, inWorld(FILES, async (world) => {
    mkdirSync(world.path(".git"));
    const printed = execFileSync(process.execPath, [join(directory, `${name}.mjs`)], {
      cwd: world.root, env: world.environment, encoding: "utf8", timeout: 20_000,
    });
    if (prints !== undefined) assert.equal(printed, prints);
  }));
}
