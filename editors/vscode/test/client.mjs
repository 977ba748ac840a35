// `touchmark lsp` with vscode-languageclient, the client that extensions use, in
// the real workbench: code-server, seen by a real browser; a real daemon, and an
// agent that edits over its socket.
//
//   node test/client.mjs
//
// TOUCHMARK_BIN        the program
// TOUCHMARK_EXTENSION  the text of the extension, from docs/lsp.md
// TOUCHMARK_CLIENT     has node_modules with vscode-languageclient
// TOUCHMARK_WORKBENCH  see test/code.mjs
// TOUCHMARK_BROWSER    Chromium
// TOUCHMARK_PICTURES   a directory for pictures of each step
//
// VS Code leaves processes behind that have sessions of their own: run it in a
// PID namespace, as tests/tests/editors_lsp.rs does.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { PATIENCE, chromium, serve, until } from "./code.mjs";

const { TOUCHMARK_BIN: program, TOUCHMARK_EXTENSION: extension, TOUCHMARK_CLIENT: languageClient, TOUCHMARK_BROWSER: browser, TOUCHMARK_PICTURES: pictures } = process.env;

const base = realpathSync(mkdtempSync(join(tmpdir(), "tmlc")));
const root = join(base, "shop");
const own = join(base, "extensions/example.touchmark-lsp-0.0.1");
for (const name of ["home", "run", "shop", "shop/.git", "data", "data/User", "extensions", own.slice(base.length + 1)]) mkdirSync(join(base, name), { mode: 0o700 });
Object.assign(process.env, { HOME: join(base, "home"), XDG_RUNTIME_DIR: join(base, "run") });
for (const name of ["TOUCHMARK_SOCKET", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"]) delete process.env[name];

writeFileSync(join(base, "config.yaml"), "");
writeFileSync(
  join(base, "data/User/settings.json"),
  JSON.stringify({
    "touchmark.inlayHints": true,
    "files.autoSave": "off",
    "workbench.startupEditor": "none",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "chat.disableAIFeatures": true,
    "git.enabled": false,
    "editor.minimap.enabled": false,
    "editor.autoClosingBrackets": "never",
    "editor.quickSuggestions": { other: "off" },
    "window.commandCenter": false,
  }),
);
const manifest = { name: "touchmark-lsp", publisher: "example", version: "0.0.1", engines: { vscode: "^1.91.0" }, activationEvents: ["onStartupFinished"], main: "./extension.js" };
writeFileSync(join(own, "package.json"), JSON.stringify(manifest));
writeFileSync(join(own, "extension.js"), extension);
cpSync(join(languageClient, "node_modules"), join(own, "node_modules"), { recursive: true });

const [plain, windows, mixed] = ["a.txt", "größe 🙂 b.txt", "mixed.txt"];
writeFileSync(join(root, plain), "one\ntwo\nthree\n");
writeFileSync(join(root, windows), "eins 🙂 x\r\nzwei 🙂🙂 y\r\ndrei\r\n");
// VS Code shows three lines, since a carriage return alone is a line end there.
writeFileSync(join(root, mixed), "a\rb\nc\n");

const touchmark = (...args) => execFileSync(program, args, { cwd: root, encoding: "utf8" });
const call = (method, params) => JSON.parse(touchmark("call", method, JSON.stringify(params)));
const session = "s";
const edit = (path, oldString, newString) => {
  call("file/read", { session, path });
  return call("file/edit", { session, path, oldString, newString });
};
// Not as of now: in the middle of a save, that would make its middle a version.
const state = (path) => call("file/status", { session, paths: [path], sync: false }).files[0];
const unsaved = (path) => until(`${path} unsaved`, () => state(path).unsaved && state(path).unsavedLines);
const clean = (path) => until(`${path} saved`, () => !state(path).unsaved);
const saved = (path) => until(`the save of ${path}`, () => call("file/history", { path, sync: false }).versions[0].evidence === "editor");
const disk = (path) => readFileSync(join(root, path), "utf8");

touchmark("start");
edit(plain, "three", "drei");
edit(windows, "zwei", "ZWEI");
call("file/read", { session, path: mixed });
const { server, address } = await serve(base, root);
const chrome = await chromium.launch({ executablePath: browser, args: ["--no-sandbox"] });
const page = await chrome.newPage({ viewport: { width: 1000, height: 620 } });
page.setDefaultTimeout(PATIENCE);
const keys = async (...keys) => {
  for (const key of keys) await page.keyboard.press(key);
};
const line = (text) => page.locator(".editor-instance .view-line").filter({ hasText: text });
let pictured = 0;
const picture = (name) => page.screenshot({ animations: "disabled", path: join(pictures, `${++pictured}-${name}.png`) });

async function openFile(name) {
  await keys("Control+P");
  await page.locator(".quick-input-widget input").first().fill(name);
  await page.locator(".quick-input-list .monaco-list-row").filter({ hasText: name }).first().waitFor();
  await keys("Enter");
  await page.locator(".tab.active").filter({ hasText: name }).waitFor();
  await line(/./).first().waitFor();
}

async function scenario() {
  await page.goto(`${address}/?folder=${encodeURIComponent(root)}`);
  await page.locator(".monaco-workbench .explorer-folders-view").waitFor();
  await openFile(plain);
  // What the extension has set, and what the user's settings have.
  await page.locator(".squiggly-hint").first().waitFor();
  await line(/drei.*agent-1/).waitFor();
  await line("drei").hover({ position: { x: 12, y: 8 } });
  const hover = page.locator(".monaco-hover").filter({ hasText: "Written by agent-1" });
  await hover.filter({ hasText: "to review: line 3 by agent-1" }).first().waitFor();
  await picture("hover");

  await keys("Escape", "Control+Home");
  await page.keyboard.insertText("🙂 mine ");
  assert.deepEqual(await unsaved(plain), { start: 1, end: 1 });
  await until("an undo", async () => {
    await keys("Control+Z");
    return !state(plain).unsaved;
  });
  await keys("Control+Home");
  await page.keyboard.insertText("🙂 mine ");
  await unsaved(plain);
  await keys("Control+S");
  await saved(plain);
  await clean(plain);
  assert.equal(disk(plain), "🙂 mine one\ntwo\ndrei\n");

  await line("drei").click();
  await keys("Home", "Control+.");
  const undo = page.locator(".action-widget").getByText("Undo line 3 by agent-1");
  await undo.waitFor();
  await picture("actions");
  await undo.click();
  await page.locator(".notifications-toasts").getByText("touchmark: undone: a.txt").waitFor();
  await line("three").waitFor();
  assert.equal(disk(plain), "🙂 mine one\ntwo\nthree\n");
  await clean(plain);

  // Line ends of two characters, and characters of two units.
  await openFile(windows);
  await line("ZWEI").click();
  await keys("End");
  await page.keyboard.type(" end");
  await keys("Home", ...Array.from({ length: 7 }, () => "ArrowRight"));
  await page.keyboard.type("Q");
  assert.deepEqual(await unsaved(windows), { start: 2, end: 2 });
  await keys("Control+S");
  await saved(windows);
  await clean(windows);
  assert.equal(disk(windows), "eins 🙂 x\r\nZWEI 🙂🙂Q y end\r\ndrei\r\n");
  await picture("saved");

  // The other line ends alone are no change.
  await openFile(mixed);
  await line("b").click();
  await keys("End");
  await page.keyboard.type("!");
  await unsaved(mixed);
  await until("an undo", async () => {
    await keys("Control+Z");
    return !state(mixed).unsaved;
  });
}

const servers = () => execFileSync("ps", ["-eo", "args"], { encoding: "utf8" }).split("\n").filter((args) => args.startsWith(program) && args.endsWith(" lsp")).length;
try {
  await scenario();
  assert.equal(servers(), 1);
  await chrome.close();
  server.kill();
  await until("the server's end", () => servers() === 0);
} catch (error) {
  await picture("failed");
  throw error;
} finally {
  touchmark("stop");
  try {
    rmSync(base, { recursive: true, force: true });
  } catch {
    // A process of VS Code that has not ended yet writes there.
  }
}
process.exit(0);
