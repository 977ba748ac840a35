// The packed extension, unpacked, against a real daemon; in place of VS Code
// stands what of its interface the extension uses. The workbench itself is not
// driven here.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import Module, { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import { fileURLToPath } from "node:url";

const base = realpathSync(mkdtempSync(join(tmpdir(), "tmvs")));
const root = join(base, "ws");
for (const name of ["home", "run", "ws", "out"]) mkdirSync(join(base, name), { mode: 0o700 });
Object.assign(process.env, { HOME: join(base, "home"), XDG_RUNTIME_DIR: join(base, "run") });
const file = join(root, "a.txt");
writeFileSync(file, "one\n");

execFileSync(process.execPath, [fileURLToPath(new URL("../tools/package.mjs", import.meta.url)), join(base, "t.vsix")], { stdio: ["ignore", "ignore", "inherit"] });
execFileSync("python3", ["-c", "import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; z.extractall(sys.argv[2])", join(base, "t.vsix"), join(base, "out")]);

class Emitter {
  #heard = new Set();
  event = (listener) => {
    this.#heard.add(listener);
    return { dispose: () => this.#heard.delete(listener) };
  };
  fire(value) {
    for (const listener of [...this.#heard]) listener(value);
  }
  dispose() {}
}

const events = {};
const on = (name) => (events[name] ??= new Emitter()).event;
const folder = { name: "ws", index: 0, uri: { scheme: "file", fsPath: root, toString: () => `file://${root}` } };
const uri = { scheme: "file", fsPath: file, toString: () => `file://${file}` };
const document = { uri, isDirty: false, text: "one\n", getText: () => document.text, lineCount: 2, lineAt: (line) => ({ range: line }) };
const marked = [];
const editor = { document, setDecorations: (_, lines) => marked.push(lines) };
const item = { hide() { item.text = undefined; }, show() {}, dispose() {} };
const commands = {};
const picked = [];
let tree;
const settings = { start: true, path: "", warnBeforeSave: true };
const warned = [];

const vscode = {
  version: "0",
  EventEmitter: Emitter,
  Disposable: { from: (...all) => ({ dispose: () => all.forEach((one) => one.dispose()) }) },
  Uri: { joinPath: (one) => one, file: (fsPath) => ({ scheme: "file", fsPath }) },
  ThemeColor: class {},
  ThemeIcon: class { constructor(id) { this.id = id; } },
  TreeItem: class { constructor(label) { this.label = label; } },
  TreeItemCollapsibleState: { Expanded: 2 },
  StatusBarAlignment: { Left: 1 },
  OverviewRulerLane: { Left: 1 },
  commands: { registerCommand: (name, run) => ((commands[name] = run), { dispose() {} }), executeCommand: async () => undefined },
  window: {
    activeTextEditor: editor,
    visibleTextEditors: [editor],
    createStatusBarItem: () => item,
    createTextEditorDecorationType: () => ({ dispose() {} }),
    registerTreeDataProvider: (_, provider) => ((tree = provider), { dispose() {} }),
    onDidChangeActiveTextEditor: on("active"),
    onDidChangeVisibleTextEditors: on("visible"),
    showWarningMessage: async (text) => void warned.push(text),
    showInformationMessage: async () => undefined,
    showInputBox: async () => "look at line 1",
    showQuickPick: async (rows) => void picked.push(rows),
  },
  workspace: {
    isTrusted: true,
    workspaceFolders: [folder],
    textDocuments: [document],
    getWorkspaceFolder: () => folder,
    getConfiguration: () => ({ get: (name, otherwise) => settings[name] ?? otherwise }),
    onDidOpenTextDocument: on("open"),
    onDidCloseTextDocument: on("close"),
    onDidChangeTextDocument: on("change"),
    onDidSaveTextDocument: on("save"),
    onWillSaveTextDocument: on("willSave"),
    onDidChangeWorkspaceFolders: on("folders"),
    onDidGrantWorkspaceTrust: on("trust"),
    onDidChangeConfiguration: on("configuration"),
  },
};
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));

const require = createRequire(join(base, "out/extension/package.json"));
const extension = require("./dist/editors/vscode/src/extension.js");
const { connect } = require("./dist/bindings/typescript/src/client.js");
const { changedLines } = require("./dist/editors/vscode/src/lines.js");
const { edited, unchanged, unsavedLines } = require("./dist/editors/vscode/src/unsaved.js");
const context = { subscriptions: [], extensionUri: {} };

// The daemon writes its last words while it is removed, and the extension has
// to hear of its end.
after(() => rm(base, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));

/** Until it is so: what the daemon tells comes by itself. */
async function until(what, is) {
  for (const end = performance.now() + 20_000; performance.now() < end; ) {
    const value = await is();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return assert.fail(`${what}: it never came`);
}

test("which lines are not saved", () => {
  const change = (first, last, text = "") => ({ range: { start: { line: first }, end: { line: last } }, text });
  let edit = unchanged(10);
  edit = edited(edit, 10, [change(3, 3, "x")]);
  assert.deepEqual(unsavedLines(edit), { start: 4, end: 4 });
  // Lines are added above; then one is taken out that was the saved file's eighth.
  edit = edited(edit, 12, [change(1, 1, "a\nb\n")]);
  assert.deepEqual(unsavedLines(edit), { start: 2, end: 4 });
  edit = edited(edit, 11, [change(9, 10)]);
  assert.deepEqual(unsavedLines(edit), { start: 2, end: 9 });
  // Two cursors at once.
  assert.deepEqual(unsavedLines(edited(unchanged(10), 10, [change(8, 8, "y"), change(6, 6, "y")])), { start: 7, end: 9 });
  assert.deepEqual(unsavedLines(edited(unchanged(1), 2, [change(0, 0, "\n")])), { start: 1, end: 1 });
});

test("which lines are new", () => {
  assert.deepEqual(changedLines("a\nb\nc\n", "a\nb\nc\n"), []);
  assert.deepEqual(changedLines("a\nb\nc\n", "a\nx\nc\n"), [1]);
  assert.deepEqual(changedLines("a\nb\nc\n", "x\na\nb\ny\nc\n"), [0, 3]);
  assert.deepEqual(changedLines("a\nb\nc\n", "a\nc\n"), [1]);
});

test("what the user and an agent do is told to each other", async () => {
  extension.activate(context);
  const client = await connect({ workspace: root });
  const session = "agent";
  const path = "a.txt";
  const read = () => client.fileRead({ session, path });
  const write = (text) => client.fileWrite({ session, path, text });
  await read();

  document.isDirty = true;
  document.text = "typed\n";
  events.change.fire({ document, contentChanges: [] });
  await until("unsaved", async () => (await client.fileStatus({ session })).files[0].unsaved);

  writeFileSync(file, document.text);
  document.isDirty = false;
  events.save.fire(document);
  const saved = await until("the save", async () => {
    const [version] = (await client.fileHistory({ path })).versions;
    return version.evidence === "editor" && version;
  });
  assert.equal(saved.author.kind, "user");
  await until("the status bar", () => item.text?.includes("stale for agent"));

  const [row] = await tree.getChildren();
  assert.equal(tree.getTreeItem(row).description, "1 stale");
  const [stale] = await tree.getChildren(row);
  assert.deepEqual([tree.getTreeItem(stale).label, tree.getTreeItem(stale).description], ["a.txt", "stale"]);

  await read();
  await write("typed\nby the agent\n");
  await until("the agent's name", () => item.text?.includes("agent"));
  // Loaded again, as VS Code does.
  document.text = "typed\nby the agent\n";
  events.change.fire({ document, contentChanges: [] });
  await until("a mark", () => marked.at(-1)?.includes(1));

  await commands["touchmark.history"]();
  assert.match(picked[0][0].label, /agent/);
  await commands["touchmark.tell"]();
  assert.equal((await client.warningTake({ session })).warning.note, "look at line 1");

  // The user types on over bytes that the agent replaces meanwhile.
  document.isDirty = true;
  document.text = "mine\n";
  events.change.fire({ document, contentChanges: [] });
  await read();
  await write("newer\n");
  await until("the news of it", () => warned.some((text) => /unsaved/.test(text)));
  const warnings = async () => {
    const held = [];
    events.willSave.fire({ document, waitUntil: (asked) => held.push(asked) });
    await Promise.all(held);
    return warned.filter((text) => /since you loaded it/.test(text)).length;
  };
  assert.equal(await warnings(), 1, warned.join("\n"));
  // Saved all the same: told once of the same bytes, again of others.
  assert.equal(await warnings(), 1, warned.join("\n"));
  await read();
  await write("newest\n");
  await until("the news of that", () => warned.filter((text) => /unsaved/.test(text)).length === 2);
  assert.equal(await warnings(), 2, warned.join("\n"));

  context.subscriptions.forEach((one) => one.dispose());
  await client.shutdown().catch(() => undefined);
  client.close();
});
