import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

/**
 * The signs beyond ASCII that the page may draw: those of Windows' old character
 * sets (WGL4), which DejaVu, Liberation, Noto and the fonts of all systems have.
 * Anything else is drawn by CSS or SVG.
 */
const SIGNS = "·×–“”’…‹›←→−";

test("the page draws no sign that a common font lacks", () => {
  const found = new Map<string, string>();
  for (const file of readdirSync("src", { recursive: true, encoding: "utf8" })) {
    if (!/\.(ts|tsx|css|html|svg)$/.test(file)) continue;
    const text = readFileSync(join("src", file), "utf8");
    for (const [sign] of text.matchAll(/[^\x00-\x7f]/gu)) if (!SIGNS.includes(sign)) found.set(sign, file);
    // A sign can be written by its number, too.
    for (const [sign] of text.matchAll(/&#?\w+;|content: *"[^"]*\\[^"]*"/g)) if (!/^&(amp|lt|gt|nbsp|quot|rsquo);$/.test(sign)) found.set(sign, file);
  }
  assert.deepEqual([...found], []);
});
