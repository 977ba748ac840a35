// The cases of proto/src/quoting.rs: the page and the command line show a name alike.

import assert from "node:assert/strict";
import { test } from "node:test";
import { HIDDEN_CLASS, isHidden, shown, shownText, split } from "../src/names.js";

test("hidden characters of names are escaped, others are not", () => {
  assert.equal(shown("a\nb\u{1b}[2J"), "a\\nb\\u001b[2J");
  assert.equal(shown("\u{202e}x\u{2028}\u{200b}"), "\\u202ex\\u2028\\u200b");
  assert.equal(shown("tag\u{e0041} variation\u{e0100}"), "tag\\udb40\\udc41 variation\\udb40\\udd00");
  assert.equal(shown("\u{3164}\u{115f}\u{2800}\u{a0}"), "\\u3164\\u115f\\u2800\\u00a0");
  assert.equal(shown('a"b\\n\n'), 'a"b\\\\n\\n');
  assert.equal(shown("grün 文件 e\u{301}.rs"), "grün 文件 e\u{301}.rs");
});

test("a text keeps its tabs, line feeds and backslashes", () => {
  assert.equal(shownText("\ta\\b\n\u{202e}"), "\ta\\b\n\\u202e");
});

test("the class that the diff marks has the same characters, but for tabs and line breaks", () => {
  const marked = new RegExp(`[${HIDDEN_CLASS}]`, "u");
  const differing: string[] = [];
  for (let code = 0; code <= 0x10ffff; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    const character = String.fromCodePoint(code);
    if (code === 9 || code === 10 || code === 13) continue;
    if (marked.test(character) !== isHidden(character)) differing.push(code.toString(16));
  }
  assert.deepEqual(differing, []);
});

test("a path is split before its name", () => {
  assert.deepEqual(split("src/a/b.rs"), { directory: "src/a/", name: "b.rs" });
  assert.deepEqual(split("b.rs"), { directory: "", name: "b.rs" });
});
