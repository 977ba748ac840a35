// The packed extension, unpacked, against a real daemon; in place of VS Code
// stands what of its interface the extension uses. The workbench itself is not
// driven here.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, realpathSync, statSync, symlinkSync, writeFileSync } from "node:fs";
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
const document = {
  uri,
  isDirty: false,
  text: "one\n",
  getText: (range) => (range ? document.text.split(/(?<=\n)/).slice(range.start.line, range.end.line).join("") : document.text),
  get lineCount() {
    return document.text.split("\n").length;
  },
  lineAt: (line) => ({ range: { start: { line }, end: { line } }, line }),
};
const marked = [];
const inline = [];
const editor = {
  document,
  selection: { active: { line: 0 } },
  setDecorations(kind, what) {
    if (kind.gutterIconPath) marked.push(what.map(({ start }) => start.line));
    if (kind.after) inline.push(what[0]?.renderOptions.after.contentText);
  },
};
const item = { hide() { item.text = undefined; }, show() {}, dispose() {} };
const commands = {};
const picked = [];
const trees = {};
let lenses;
let hovers;
const settings = { start: true, path: "", warnBeforeSave: true, reviewInEditor: true, lineAuthor: "inline" };
const warned = [];
const said = [];
/** What the user answers to a warning with these buttons. */
let chosen;

const vscode = {
  version: "0",
  EventEmitter: Emitter,
  Disposable: { from: (...all) => ({ dispose: () => all.forEach((one) => one.dispose()) }) },
  Uri: { joinPath: (one) => one, file: (fsPath) => ({ scheme: "file", fsPath, toString: () => `file://${fsPath}` }) },
  Range: class { constructor(line, from, last, to) { this.start = { line, character: from }; this.end = { line: last, character: to }; } },
  CodeLens: class { constructor(range, command) { Object.assign(this, { range, command }); } },
  Hover: class { constructor(text) { this.text = text.text; } },
  MarkdownString: class {
    text = "";
    appendMarkdown(text) { this.text += text; return this; }
    appendText(text) { this.text += text; return this; }
    appendCodeblock(text) { this.text += text; return this; }
  },
  TextEditorRevealType: {},
  languages: {
    registerCodeLensProvider: (_, provider) => ((lenses = provider), { dispose() {} }),
    registerHoverProvider: (_, provider) => ((hovers = provider), { dispose() {} }),
  },
  ThemeColor: class {},
  ThemeIcon: class { static File = {}; constructor(id) { this.id = id; } },
  TreeItem: class { constructor(label) { this.label = label; } },
  TreeItemCollapsibleState: { Collapsed: 1, Expanded: 2 },
  ConfigurationTarget: { Global: 1 },
  StatusBarAlignment: { Left: 1 },
  OverviewRulerLane: { Left: 1 },
  commands: { registerCommand: (name, run) => ((commands[name] = run), { dispose() {} }), executeCommand: async () => undefined },
  window: {
    activeTextEditor: editor,
    visibleTextEditors: [editor],
    createStatusBarItem: () => item,
    createTextEditorDecorationType: (kind) => ({ ...kind, dispose() {} }),
    registerTreeDataProvider: (name, provider) => ((trees[name] = provider), { dispose() {} }),
    createTreeView: (name, { treeDataProvider }) => ((trees[name] = treeDataProvider), { dispose() {} }),
    onDidChangeTextEditorSelection: on("selection"),
    onDidChangeWindowState: on("window"),
    onDidChangeActiveTextEditor: on("active"),
    onDidChangeVisibleTextEditors: on("visible"),
    showWarningMessage: async (text, ...buttons) => (warned.push(text), buttons.find((button) => button === chosen || chosen?.includes?.(button))),
    showInformationMessage: async (text) => void said.push(text),
    showTextDocument: async () => ({ revealRange() {} }),
    showInputBox: async () => "look at line 1",
    showQuickPick: async (rows) => (picked.push(rows), rows.find((row) => row === chosen)),
  },
  workspace: {
    isTrusted: true,
    workspaceFolders: [folder],
    textDocuments: [document],
    openTextDocument: async () => document,
    asRelativePath: ({ fsPath }) => fsPath.slice(root.length + 1),
    registerTextDocumentContentProvider: () => ({ dispose() {} }),
    getWorkspaceFolder: () => folder,
    getConfiguration: () => ({
      get: (name, otherwise) => settings[name] ?? otherwise,
      update: async (name, value) => {
        settings[name] = value;
        events.configuration.fire({ affectsConfiguration: (one) => one === `touchmark.${name}` });
      },
    }),
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
const { without } = require("./dist/editors/vscode/src/shown.js");
const { ago } = require("./dist/editors/vscode/src/words.js");
const { isMode, whatWhole } = require("./dist/editors/vscode/src/whole.js");
const { edited, inDocument, inSavedFile, unchanged, unsavedLines } = require("./dist/editors/vscode/src/unsaved.js");
const context = { subscriptions: [], extensionUri: {} };

// The daemon writes its last words while it is removed, and the extension has
// to hear of its end.
after(() => rm(base, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));

/** Until it is so: what the daemon tells comes by itself. */
async function until(what, is, instead = () => "") {
  for (const end = performance.now() + 20_000; performance.now() < end; ) {
    const value = await is();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return assert.fail(`${what}: it never came ${instead()}`);
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

test("where lines of the saved file are", () => {
  // Two lines are added after the third, which was changed.
  const edit = edited(unchanged(10), 12, [{ range: { start: { line: 2 }, end: { line: 2 } }, text: "x\ny\nz" }]);
  assert.deepEqual([0, 1, 2, 3, 9].map((line) => inDocument(edit, line)), [0, 1, undefined, 5, 11]);
  assert.deepEqual([0, 1, 2, 4, 5, 11].map((line) => inSavedFile(edit, line)), [0, 1, undefined, undefined, 3, 9]);
});

test("a text without a change", () => {
  const text = "a\nb\nc\n";
  assert.equal(without(text, { lines: { start: 2, end: 2 }, before: "x\ny\n", after: "b\n" }), "a\nx\ny\nc\n");
  assert.equal(without(text, { lines: { start: 0, end: 0 }, before: "x\n", after: "" }), "x\na\nb\nc\n");
  assert.equal(without(text, { lines: { start: 3, end: 3 }, before: "x\n", after: "" }), "a\nb\nc\nx\n");
  assert.equal(without("", { lines: { start: 0, end: 0 }, before: "x\n", after: "" }), "x\n");
});

test("how long ago", () => {
  const minute = 60_000;
  assert.deepEqual([0, 1, 59, 60, 1439, 1440, 2880].map((minutes) => ago(0, minutes * minute)), ["just now", "1 min ago", "59 min ago", "1 h ago", "23 h ago", "1 day ago", "2 days ago"]);
});

test("what a change of a mode or a symlink did", () => {
  const [file, run, link] = ["100644", "100755", "120777"];
  const said = (modeBefore, mode, targetBefore, target) => whatWhole({ modeBefore, mode, targetBefore, target });
  assert.equal(said(file, run), "mode 644 → 755");
  assert.equal(said(file, "104755"), "mode 644 → 4755");
  assert.equal(said(undefined, link, undefined, "b"), "symlink → b");
  assert.equal(said(link, link, "a", "b"), "symlink a → b");
  assert.equal(said(link, undefined, "a"), "removed symlink → a");
  assert.equal(said(file, link, undefined, "b"), "file replaced by symlink → b");
  assert.equal(said(link, file, "a"), "symlink → a replaced by file");
  assert.equal(said(null, file), "new file");
  assert.equal(said(file, file), "content changed");
  assert.equal(said(null, link, null, "\u202etxt\n"), "symlink → \\u202etxt\\n");
  const modes = [[file, run], [file, file], [link, file], [file, link], [file, null], [null, file]];
  assert.deepEqual(modes.map(([modeBefore, mode]) => isMode({ modeBefore, mode })), [true, false, false, false, false, false]);
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

  const tree = trees["touchmark.sessions"];
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
  const warnings = () => warned.filter((text) => /unsaved changes in it/.test(text)).length;
  await until("the news of it", () => warnings() === 1);
  const save = async () => {
    const held = [];
    events.willSave.fire({ document, waitUntil: (asked) => held.push(asked) });
    await Promise.all(held);
  };
  // One warning of the same bytes, however often they are saved over.
  await save();
  await save();
  assert.equal(warnings(), 1, warned.join("\n"));
  await read();
  await write("newest\n");
  await until("the news of that", () => warnings() === 2);
  await save();
  assert.equal(warnings(), 2, warned.join("\n"));

  client.close();
});

test("the user reviews what an agent changed", async () => {
  const client = await connect({ workspace: root });
  const [session, path] = ["agent", "a.txt"];
  // The editor reads the file again, which is no save.
  const loads = (text) => {
    [document.text, document.isDirty] = [text, false];
    events.change.fire({ document, contentChanges: [] });
  };
  const disk = (what, text) => until(what, () => readFileSync(file, "utf8") === text);
  const titles = () => lenses.provideCodeLenses(document).map(({ range, command }) => `${range.start.line + 1} ${command.title.replace(/.*\u00a0/, "")}`);
  const shown = (what, ...wanted) => until(what, () => String(titles().filter((title) => !/ (Keep|Undo|Later)$/.test(title))) === String(wanted), titles);
  const queue = async () => (await client.reviewList({})).hunks.map(({ path, id }) => ({ path, id }));
  await client.reviewKeep({ hunks: await queue() });

  writeFileSync(file, "one\ntwo\nthree\n");
  loads("one\ntwo\nthree\n");
  await client.fileRead({ session, path });
  await client.fileWrite({ session, path, text: "eins\ntwo\ndrei\n" });
  loads("eins\ntwo\ndrei\n");
  const label = (await client.sessionList()).sessions[0].label ?? session;
  await shown("both", `1 ${label}, just now: line 1 changed`, `3 ${label}, just now: line 3 changed`);
  const hover = async (line) => (await hovers.provideHover(document, { line }))?.text;
  assert.match(await hover(2), new RegExp(`${label} wrote this line, just now`));
  editor.selection.active.line = 2;
  events.selection.fire({});
  await until("the author after the line", () => inline.at(-1) === `${label}, just now`);

  // What the document does not have on its lines is not offered there.
  document.text = "\neins\ntwo\ndrei\n";
  assert.deepEqual(titles(), []);
  document.text = "eins\ntwo\ndrei\n";

  const press = (line, what) => {
    const { command } = lenses.provideCodeLenses(document).find(({ range, command }) => range.start.line + 1 === line && command.title.endsWith(what));
    return commands[command.command](...command.arguments);
  };
  await press(3, "Undo");
  await disk("the undo", "eins\ntwo\nthree\n");
  loads("eins\ntwo\nthree\n");
  await shown("one is left", `1 ${label}, just now: line 1 changed`);

  // Another reviewer keeps it; no event says so.
  await client.reviewKeep({ hunks: await queue() });
  await press(1, "Undo");
  assert.match(warned.at(-1), /Conflict in a.txt: the change is no longer as it was listed/);
  await disk("nothing undone", "eins\ntwo\nthree\n");
  await shown("nothing");

  // Unsaved changes are saved first, or nothing is undone.
  await client.fileRead({ session, path });
  await client.fileWrite({ session, path, text: "eins\ntwo\nTHREE\n" });
  loads("eins\ntwo\nTHREE\n");
  await shown("another", `3 ${label}, just now: line 3 changed`);
  const row = trees["touchmark.review"].getChildren()[0];
  assert.equal(trees["touchmark.review"].getTreeItem(row).label.fsPath, file);
  document.isDirty = true;
  await commands["touchmark.review.undo"](row);
  assert.match(warned.at(-1), /You have unsaved changes in a.txt/);
  await disk("not undone", "eins\ntwo\nTHREE\n");
  chosen = "Save and Undo";
  document.save = async () => ((document.isDirty = false), true);
  await commands["touchmark.review.undo"](row);
  await disk("undone", "eins\ntwo\nthree\n");

  // Modes and symlinks have no lines: they are items of the view.
  const at = (name) => join(root, name);
  const mode = (name) => (statSync(at(name)).mode & 0o7777).toString(8);
  const target = (name) => (lstatSync(at(name), { throwIfNoEntry: false }) ? readlinkSync(at(name)) : undefined);
  for (const name of ["kept.sh", "undone.sh"]) {
    writeFileSync(at(name), "#!/bin/sh\n");
    chmodSync(at(name), 0o644);
  }
  const { command } = await client.commandBegin({ session, label: "chmod and ln", scope: "workspace" });
  chmodSync(at("kept.sh"), 0o755);
  chmodSync(at("undone.sh"), 0o755);
  symlinkSync("kept.sh", at("link"));
  symlinkSync("a.txt", at("other"));
  await client.commandEnd({ command, exit: 0 });
  const view = trees["touchmark.review"];
  const items = () => view.getChildren().flatMap((file) => view.getChildren(file).map((change) => ({ change, file, name: file.group.name, item: view.getTreeItem(change) })));
  const listed = (what, ...wanted) => until(what, () => String(items().map(({ name, item }) => `${name}: ${item.label} by ${item.description}`)) === String(wanted));
  const by = `by ${label}, just now`;
  await listed("all four", `kept.sh: mode 644 → 755 ${by}`, `link: symlink → kept.sh ${by}`, `other: symlink → a.txt ${by}`, `undone.sh: mode 644 → 755 ${by}`);
  const item = (wanted) => items().find(({ name }) => name === wanted);
  assert.deepEqual(items().map((one) => one.item.contextValue), Array(4).fill("fileChange"));
  assert.deepEqual([item("kept.sh").item.command.command, item("link").item.command], ["vscode.open", undefined]);
  // They have no line in any editor.
  assert.deepEqual(titles(), []);
  await commands["touchmark.review.next"]();
  assert.match(said.at(-1), /Only changes of modes and symlinks/);
  await commands["touchmark.review.later"](item("other").change);
  assert.equal(item("other").item.description, `${label}, later`);
  await commands["touchmark.review.keep"](item("kept.sh").change);
  await commands["touchmark.review.undo"](item("undone.sh").change);
  await commands["touchmark.review.undo"](item("link").file);
  await commands["touchmark.review.keep"](item("other").change);
  await listed("nothing is left");
  assert.deepEqual(["kept.sh", "undone.sh"].map(mode), ["755", "644"]);
  assert.deepEqual(["link", "other"].map(target), [undefined, "a.txt"]);
  assert.deepEqual((await client.reviewList({})).files ?? [], []);
  await commands["touchmark.redo"]();
  await until("the symlink is back", () => target("link") === "kept.sh");

  client.close();
});

test("changes are kept and undone in groups, and the user is asked whose they are", async () => {
  const client = await connect({ workspace: root });
  const session = "agent";
  const view = trees["touchmark.review"];
  const at = (name) => join(root, name);
  const read = (name) => readFileSync(at(name), "utf8");
  const groups = () => view.getChildren().map((row) => ({ row, item: view.getTreeItem(row) }));
  const shown = (what, ...wanted) => until(what, () => String(groups().map(({ item }) => `${item.label?.fsPath ?? item.label}: ${item.description}`)) === String(wanted), () => JSON.stringify(groups().map(({ item }) => item)));
  const listed = async () => (await client.reviewList({})).hunks;
  await client.reviewKeep({ hunks: [...(await listed()), ...((await client.reviewList({})).files ?? [])].map(({ path, id }) => ({ path, id })) });

  // A generator: its nine files are one folded item. Beside it an edit.
  for (const name of ["gen", "docs"]) mkdirSync(at(name));
  writeFileSync(at("docs/b.md"), "one\n");
  await client.fileReadText({ session, path: "docs/b.md" });
  const { command } = await client.commandBegin({ session, label: "npm run codegen", scope: "workspace" });
  for (let n = 1; n <= 9; n++) writeFileSync(at(`gen/${n}.js`), `export const v = ${n};\n`);
  await client.commandEnd({ command, exit: 0 });
  await client.fileEdit({ session, path: "docs/b.md", oldString: "one", newString: "eins" });
  const label = (await client.sessionList()).sessions[0].label ?? session;
  const whole = (await client.commandList({})).commands.find((row) => row.command === command);
  const took = whole.endedAt - whole.begunAt;
  const named = `\`npm run codegen\` (${command}, ${took < 1000 ? `${took} ms` : `${Math.floor(took / 1000)} s`})`;
  await shown("by file", `${at("docs/b.md")}: docs`, `${named}: 9 changes, 9 files`);
  assert.deepEqual(groups().map(({ item }) => item.contextValue), ["group", "group"]);
  const all = view.getChildren(groups()[1].row);
  assert.equal(all.length, 9);
  assert.match(view.getTreeItem(all[0]).description, new RegExp(`^${label} or you, `));

  // The choice is remembered by the settings.
  for (const [by, ...wanted] of [
    ["directory", "docs/: 1 change, 1 file", "gen/: 9 changes, 9 files"],
    ["session", `${label}: 10 changes, 10 files`],
    ["command", "edits, or several commands: 1 change, 1 file", `${named}: 9 changes, 9 files`],
  ]) {
    chosen = by;
    await commands["touchmark.review.group"]();
    assert.equal(settings.groupBy, by);
    await shown(by, ...wanted);
  }

  // Without an answer to the first question nothing is done; without one to the second, nothing that may be the user's.
  const [, generated] = groups();
  chosen = undefined;
  await commands["touchmark.review.undo"](generated.row);
  assert.equal(warned.at(-1), "Undo 9 changes by agents in 9 files?");
  chosen = "Undo All";
  await commands["touchmark.review.undo"](generated.row);
  assert.equal(warned.at(-1), `${named}: gen/1.js +1, gen/2.js +1, gen/3.js +1, and 6 more. The command's, or yours?`);
  assert.equal((await listed()).length, 10);
  assert.equal(read("gen/9.js"), "export const v = 9;\n");
  // One is the user's: it leaves the queue, and stays.
  chosen = "Mine";
  await commands["touchmark.review.undo"](view.getChildren(generated.row)[8]);
  await shown("one less", "edits, or several commands: 1 change, 1 file", `${named}: 8 changes, 8 files`);
  assert.equal((await client.fileBlame({ path: "gen/9.js" })).lines[0].author.kind, "user");
  // The others are the command's: all are undone in one step.
  chosen = ["Undo All", "The Command's"];
  await commands["touchmark.review.undo"](groups()[1].row);
  await shown("undone", "edits, or several commands: 1 change, 1 file");
  assert.deepEqual([1, 8, 9].map((n) => lstatSync(at(`gen/${n}.js`), { throwIfNoEntry: false }) !== undefined), [false, false, true]);
  await commands["touchmark.redo"]();
  await shown("taken back", "edits, or several commands: 1 change, 1 file", `${named}: 8 changes, 8 files`);
  // It was said whose they are, so nothing is asked again.
  const asked = () => warned.filter((text) => /or yours\?$/.test(text)).length;
  const before = asked();
  chosen = "Undo All";
  await commands["touchmark.review.undo"](groups()[1].row);
  await shown("undone again", "edits, or several commands: 1 change, 1 file");
  assert.equal(asked(), before);
  chosen = "Keep All";
  await commands["touchmark.review.keepAll"]();
  await shown("kept");
  assert.equal(read("docs/b.md"), "eins\n");

  context.subscriptions.forEach((one) => one.dispose());
  await client.shutdown().catch(() => undefined);
  client.close();
});
