// The packed extension in the real workbench: code-server, which is VS Code
// with its extension host, seen by a real browser; a real daemon, and agents
// that speak to it over its socket.
//
//   node test/workbench.mjs
//
// TOUCHMARK_BIN        the program
// TOUCHMARK_TOOLS      has the compiler, see tools/package.mjs
// TOUCHMARK_WORKBENCH  see test/code.mjs
// TOUCHMARK_BROWSER    Chromium
// TOUCHMARK_PICTURES   a directory for pictures of each step, if they are wanted
//
// VS Code leaves processes behind that have sessions of their own: run it in a
// PID namespace, as tests/tests/editors_vscode.rs does.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { PATIENCE, chromium, codeServer, environment, node, placesIn, serve, until } from "./code.mjs";

const { TOUCHMARK_BROWSER: browser = "/usr/bin/chromium", TOUCHMARK_PICTURES: pictures } = process.env;

const base = realpathSync(mkdtempSync(join(tmpdir(), "tmwb")));
const root = join(base, "shop");
for (const name of ["home", "run", "shop", "shop/src", "data", "data/User", "extensions"]) mkdirSync(join(base, name), { mode: 0o700 });
Object.assign(process.env, { HOME: join(base, "home"), XDG_RUNTIME_DIR: join(base, "run") });
delete process.env.TOUCHMARK_SOCKET;

const path = "src/cart.js";
const file = join(root, path);
writeFileSync(
  file,
  `import { tax } from "./tax.js";

export function total(items) {
  let sum = 0;
  for (const item of items) {
    sum += item.price;
  }
  return sum + tax(sum);
}
`,
);
writeFileSync(join(root, "src/tax.js"), "export const tax = (sum) => sum * 0.19;\n");
/** A file with a word in each line, of which some were changed. */
const words = (...changed) => `${["one", "two", "three", "four", "five", "six", "seven", "eight"].map((word, at) => changed[at] ?? word).map((word) => `export const ${word} = "${word}";`).join("\n")}\n`;
writeFileSync(join(root, "src/list.js"), words());
writeFileSync(join(base, "config.yaml"), "");
writeFileSync(
  join(base, "data/User/settings.json"),
  JSON.stringify({
    "touchmark.start": true,
    "files.autoSave": "off",
    "workbench.startupEditor": "none",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "chat.disableAIFeatures": true,
    "git.enabled": false,
    "typescript.disableAutomaticTypeAcquisition": true,
    "editor.minimap.enabled": false,
    "editor.scrollBeyondLastLine": false,
    "editor.autoClosingBrackets": "never",
    "editor.autoIndent": "none",
    "editor.quickSuggestions": { other: "off" },
    "editor.suggestOnTriggerCharacters": false,
    "editor.acceptSuggestionOnEnter": "off",
    "window.commandCenter": false,
    "workbench.layoutControl.enabled": false,
  }),
);

/** Packs the extension and has VS Code install it. Gives the place of the client that is in it. */
function install() {
  const package_ = join(base, "touchmark.vsix");
  execFileSync(process.execPath, [fileURLToPath(new URL("../tools/package.mjs", import.meta.url)), package_], { stdio: ["ignore", "ignore", "inherit"] });
  execFileSync(node, [codeServer, ...placesIn(base), "--install-extension", package_], { env: environment(), stdio: ["ignore", "ignore", "inherit"] });
  const [name] = readdirSync(join(base, "extensions")).filter((name) => name.startsWith("touchmark."));
  return createRequire(join(base, "extensions", name, "package.json"))("./dist/bindings/typescript/src/client.js");
}

/** What the user sees and does. */
class Window {
  #pictures = 0;

  constructor(page) {
    this.page = page;
  }

  static async open(chrome, address) {
    const page = await chrome.newPage({ viewport: { width: 1000, height: 620 } });
    page.setDefaultTimeout(PATIENCE);
    await page.goto(`${address}/?folder=${encodeURIComponent(root)}`);
    await page.locator(".monaco-workbench .explorer-folders-view").waitFor();
    return new Window(page);
  }

  async sees(locator) {
    await locator.first().waitFor();
  }

  status(text) {
    return this.sees(this.page.locator(".statusbar-item").filter({ hasText: text }));
  }

  /** All rows of the extension's tree, from above. */
  async tree(...texts) {
    const rows = this.page.locator(".pane", { hasText: "Agents' Copies" }).locator(".monaco-list-row");
    await until(`the tree [${texts.join("; ")}]`, async () => {
      // In the document they stand in any order.
      const seen = await rows.evaluateAll((all) =>
        all
          .sort((one, other) => one.dataset.index - other.dataset.index)
          .map((row) => Array.from(row.querySelectorAll(".label-name, .label-description"), (part) => part.textContent).join(" ").trim()),
      );
      return String(seen) === String(texts);
    });
  }

  /** The lines that have a bar beside them: it is drawn in the margin, at the line's height. */
  async bars(...texts) {
    const heights = (locator) => locator.evaluateAll((all) => all.map((one) => Math.round(one.getBoundingClientRect().top)));
    await until(`a bar beside each of [${texts.join("; ")}]`, async () => {
      const bars = await heights(this.page.locator(".margin .cgmr[class*=TextEditorDecoration]"));
      const lines = await Promise.all(texts.map((text) => heights(this.line(text))));
      return String(bars.sort()) === String(lines.flat().sort());
    });
  }

  line(text) {
    return this.page.locator(".editor-instance .view-line").filter({ hasText: text });
  }

  notice(text) {
    return this.page.locator(".notifications-toasts .notification-list-item").filter({ hasText: text });
  }

  /** The lines above the changes to review, in the editor that is open. */
  async changes(...texts) {
    await until(`the changes [${texts.join("; ")}]`, async () => {
      const rows = this.lens("claude-1");
      const seen = await rows.evaluateAll((all) => all.sort((one, other) => parseInt(one.style.top) - parseInt(other.style.top)).map((row) => row.textContent));
      return seen.length === texts.length && texts.every((text, at) => seen[at].includes(text));
    });
  }

  /** The line above a change. */
  lens(text) {
    return this.page.locator(".codelens-decoration").filter({ hasText: text });
  }

  async dialog(button) {
    await this.page.locator(".monaco-dialog-box").getByRole("button", { name: button, exact: true }).click();
  }

  async openFile(name) {
    await this.page.keyboard.press("Control+P");
    await this.page.locator(".quick-input-widget input").first().fill(name);
    await this.sees(this.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: name }));
    await this.page.keyboard.press("Enter");
    await this.sees(this.page.locator(".editor-instance .view-line"));
  }

  async command(name) {
    await this.page.keyboard.press("F1");
    await this.page.locator(".quick-input-widget input").first().fill(`>${name}`);
    await this.sees(this.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: name }));
    await this.page.keyboard.press("Enter");
  }

  /** At the end of the file. */
  async type(text) {
    await this.page.locator(".editor-instance .view-lines").first().click();
    await this.page.keyboard.press("Control+End");
    await this.page.keyboard.type(text);
  }

  async picture(name) {
    if (pictures === undefined) return;
    // What moves is shown where it will come to rest.
    await this.page.screenshot({ animations: "disabled", path: join(pictures, `${String(++this.#pictures).padStart(2, "0")}-${name}.png`) });
  }
}

async function scenario(connect, window) {
  await window.openFile("cart.js");
  await window.status("not tracked");
  await window.page.getByRole("button", { name: "Agents' Copies Section" }).click();
  const client = await connect({ workspace: root, start: false });
  const [fix, docs] = ["fix-42", "docs-7"];
  const state = async (session) => (await client.fileStatus({ session })).files.find((known) => known.path === path);
  const read = (session) => client.fileReadText({ session, path });
  const edit = (oldString, newString) => client.fileEdit({ session: fix, path, oldString, newString });
  for (const [session, name] of [[fix, "claude"], [docs, "codex"]]) {
    await client.sessionOpen({ session, agent: { name, version: "1" } });
    await read(session);
  }
  await client.fileReadText({ session: docs, path: "src/tax.js" });
  await window.status("no change seen");
  await window.tree("codex-1", "src/cart.js fresh", "src/tax.js fresh", "claude-1", "src/cart.js fresh");
  await window.picture("opened");

  await window.type("\nexport const empty = [];\n");
  await until("unsaved", async () => (await state(fix)).unsaved);
  await window.picture("typed");

  await window.page.keyboard.press("Control+S");
  const saved = await until("the save", async () => {
    const [version] = (await client.fileHistory({ path })).versions;
    return version.evidence === "editor" && version;
  });
  assert.equal(saved.author.kind, "user");
  assert.match(readFileSync(file, "utf8"), /empty = \[\]/);
  await until("saved", async () => !(await state(fix)).unsaved);
  await window.status(/you; stale for codex-1, claude-1\s*$/);
  await window.tree("codex-1 1 stale", "src/cart.js stale", "src/tax.js fresh", "claude-1 1 stale", "src/cart.js stale");
  await window.bars();
  await window.picture("saved");

  await read(fix);
  await edit("sum += item.price;", "sum += item.price * item.count;");
  await window.status(/claude-1; stale for codex-1\s*$/);
  await window.sees(window.line("item.count"));
  await window.bars("item.count");
  await window.tree("codex-1 1 stale", "src/cart.js stale", "src/tax.js fresh", "claude-1", "src/cart.js fresh");
  await window.sees(window.lens("claude-1, just now: line 6 changed"));
  await window.picture("edited-by-the-agent");

  await window.command("History of This File by Author");
  const versions = window.page.locator(".quick-input-list .monaco-list-row");
  await window.sees(versions.filter({ hasText: "as first seen" }));
  assert.deepEqual(await versions.evaluateAll((all) => all.map((row) => row.querySelector(".label-name").textContent.trim())), ["claude-1", "you", "as first seen"]);
  await window.picture("versions");
  await window.page.keyboard.press("Escape");

  await window.command("Tell the Agents about This File");
  await window.page.locator(".quick-input-widget", { hasText: "Tell codex-1, claude-1 about src/cart.js" }).locator("input").first().fill("prices are in cents");
  await window.page.keyboard.press("Enter");
  await window.sees(window.notice("2 of 2 sessions will be told"));
  assert.equal((await client.warningTake({ session: docs })).warning.note, "prices are in cents");

  // The user types on, over bytes that the agent replaces meanwhile.
  await window.type("// mine\n");
  await until("unsaved again", async () => (await state(fix)).unsaved);
  await window.bars();
  await edit("let sum = 0;", "let sum = 0; // in cents");
  const warning = window.notice("You have unsaved changes in it");
  await window.sees(warning);
  await window.picture("changed-while-dirty");
  const theirs = readFileSync(file, "utf8");
  await window.page.keyboard.press("Control+S");
  const refusal = window.notice(/content of the file is newer/);
  await window.sees(refusal);
  // One warning, although the save came after it.
  assert.equal(await warning.count(), 1);
  await window.picture("warned");
  // VS Code refuses: the agent's bytes stand, and the user's are unsaved still.
  assert.equal(readFileSync(file, "utf8"), theirs);
  assert.ok((await state(fix)).unsaved);
  await warning.getByRole("button", { name: "Compare" }).click();
  const sides = window.page.locator(".monaco-diff-editor .view-line");
  await window.sees(sides.filter({ hasText: "in cents" }));
  await window.sees(sides.filter({ hasText: "mine" }));
  await window.picture("compared");
  // Told to overwrite it does, and the daemon knows who replaced whose bytes.
  await refusal.getByRole("button", { name: "Overwrite" }).click();
  const [mine, its] = await until("the overwriting", async () => {
    const { versions } = await client.fileHistory({ path });
    return versions[0].evidence === "editor" && versions.filter(({ clock }) => !versions.some(({ amends }) => amends === clock));
  });
  assert.match(readFileSync(file, "utf8"), /mine/);
  assert.deepEqual([mine.author.kind, its.author.session], ["user", fix]);
  assert.equal((await state(fix)).state, "stale");
  await window.status(/you; stale for codex-1, claude-1\s*$/);
  await window.tree("codex-1 1 stale", "src/cart.js stale", "src/tax.js fresh", "claude-1 1 stale", "src/cart.js stale");
  // The warning was answered; an overwriting that was asked for brings no other.
  assert.equal(await warning.count(), 0);
  await window.picture("overwritten");
  client.close();
}

/** The user reviews what an agent changed. The bytes on disk are the truth. */
async function review(connect, window) {
  const client = await connect({ workspace: root, start: false });
  const [session, path, file] = ["fix-42", "src/list.js", join(root, "src/list.js")];
  const disk = (what, ...changed) => until(what, () => readFileSync(file, "utf8") === words(...changed));
  const edit = async (...pairs) => {
    await client.fileReadText({ session, path });
    for (const [from, to] of pairs) await client.fileEdit({ session, path, oldString: `export const ${from} = "${from}"`, newString: `export const ${to} = "${to}"` });
  };
  const queued = async () => (await client.reviewList({ paths: [path] })).hunks.map(({ lines }) => lines.start);
  const click = (text, what) => window.lens(text).getByText(what).click();

  await window.command("Notifications: Clear All Notifications");
  // What was done before is kept, in one step, which is asked about from two changes on.
  await client.fileEdit({ session: "docs-7", path: "src/tax.js", oldString: "0.19", newString: "0.2" });
  await window.command("Focus on Agents' Changes View");
  await window.sees(window.page.locator(".pane-body .monaco-list-row").filter({ hasText: "tax.js" }));
  await window.command("Keep All Changes by Agents");
  await window.dialog("Keep All");
  await until("an empty queue", async () => (await client.reviewList({})).hunks.length === 0);
  await window.sees(window.page.getByText("No agent's change waits for your review."));

  await edit(["two", "zwei"], ["seven", "sieben"]);
  await window.openFile("list.js");
  await window.sees(window.lens("claude-1, just now: line 2 changed"));
  await window.changes("line 2 changed", "line 7 changed");
  await window.picture("review");
  await window.line("zwei").hover({ position: { x: 120, y: 8 } });
  await window.sees(window.page.locator(".monaco-hover").filter({ hasText: "claude-1 wrote this line, just now" }));
  await window.picture("author");
  await window.page.keyboard.press("Escape");

  // Undone: the other change stays.
  await click("line 7 changed", "Undo");
  await disk("the undo", undefined, "zwei");
  await window.changes("line 2 changed");
  await window.command("Take Back the Last Undo");
  await disk("the redo", undefined, "zwei", undefined, undefined, undefined, undefined, "sieben");
  await window.changes("line 2 changed", "line 7 changed");
  // Kept: nothing is written.
  await click("line 2 changed", "Keep");
  await window.changes("line 7 changed");
  assert.deepEqual(await queued(), [7]);
  await disk("what was kept", undefined, "zwei", undefined, undefined, undefined, undefined, "sieben");

  // Another reviewer is faster: what is no longer in the list is not undone.
  const { hunks } = await client.reviewList({ paths: [path] });
  await client.reviewKeep({ hunks: hunks.map(({ id }) => ({ path, id })) });
  await click("line 7 changed", "Undo");
  await window.sees(window.notice("Conflict in src/list.js: the change is no longer as it was listed"));
  await window.picture("conflict");
  await disk("what the other kept", undefined, "zwei", undefined, undefined, undefined, undefined, "sieben");
  await window.changes();

  // With unsaved changes elsewhere in the file: they are saved first.
  await edit(["four", "vier"]);
  await window.sees(window.lens("line 4 changed"));
  await window.type("// mine\n");
  await click("line 4 changed", "Undo");
  const unsaved = window.notice("You have unsaved changes in src/list.js");
  await window.sees(unsaved);
  await window.picture("undo-while-dirty");
  await unsaved.getByRole("button", { name: "Save and Undo" }).click();
  await until("both", () => readFileSync(file, "utf8") === `${words(undefined, "zwei", undefined, undefined, undefined, undefined, "sieben")}// mine\n`);

  await modes(client, window, session);

  // All that a session did: the line that the user has changed since stays.
  await edit(["five", "fünf"]);
  await window.sees(window.line("fünf"));
  writeFileSync(file, readFileSync(file, "utf8").replaceAll("fünf", "cinq"));
  await window.sees(window.line("cinq"));
  await client.sync();
  await window.command("Focus on Agents' Copies View");
  const row = window.page.locator(".pane", { hasText: "Agents' Copies" }).locator(".monaco-list-row").filter({ hasText: /^claude-1/ });
  // The tree may be drawn again in between.
  const undo = row.locator("[aria-label*='Undo What This Session Changed']");
  await until("the session's undo", async () => {
    await row.hover();
    return undo.click({ timeout: 2_000 }).then(() => true, () => false);
  });
  await window.dialog("Undo");
  await window.sees(window.notice(/Conflict in src\/list.js, line 5: changed since by you/));
  await window.picture("undone-session");
  await until("what is left", () => readFileSync(file, "utf8") === `${words(undefined, undefined, undefined, undefined, "cinq")}// mine\n`);
  client.close();
}

/** A mode and a symlink have no lines: they are kept and undone in the view. */
async function modes(client, window, session) {
  const at = (name) => join(root, name);
  for (const name of ["kept.sh", "undone.sh"]) {
    writeFileSync(at(name), "#!/bin/sh\n");
    chmodSync(at(name), 0o644);
  }
  const { command } = await client.commandBegin({ session, label: "chmod and ln", scope: "workspace" });
  chmodSync(at("kept.sh"), 0o755);
  chmodSync(at("undone.sh"), 0o700);
  symlinkSync("kept.sh", at("newest"));
  await client.commandEnd({ command, exit: 0 });
  await window.command("Focus on Agents' Changes View");
  const row = (text) => window.page.locator(".pane", { hasText: "Agents' Changes" }).locator(".monaco-list-row").filter({ hasText: text });
  const does = async (text, action) => {
    await until(`${action} of ${text}`, async () => {
      // The tree may be drawn again in between.
      await row(text).hover();
      const shown = row(text).locator(`[aria-label^='${action}']`);
      return shown.click({ timeout: 2_000 }).then(() => true, () => false);
    });
    await row(text).waitFor({ state: "detached" });
  };
  await window.sees(row("mode 644 → 755"));
  await row("mode 644 → 755").hover();
  await window.picture("modes");
  assert.equal(await row("mode 644 → 755").locator("[aria-label^='Compare']").count(), 0);
  await does("mode 644 → 755", "Keep");
  await does("mode 644 → 700", "Undo");
  await does("symlink → kept.sh", "Undo");
  assert.deepEqual(["kept.sh", "undone.sh"].map((name) => (statSync(at(name)).mode & 0o7777).toString(8)), ["755", "644"]);
  assert.equal(lstatSync(at("newest"), { throwIfNoEntry: false }), undefined);
}

const connect = install().connect;
const { server, address } = await serve(base, root);
const chrome = await chromium.launch({ executablePath: browser, args: ["--no-sandbox"] });
const window = await Window.open(chrome, address);
try {
  await scenario(connect, window);
  await review(connect, window);
} catch (error) {
  await window.picture("failed");
  throw error;
} finally {
  await chrome.close();
  server.kill();
  try {
    rmSync(base, { recursive: true, force: true });
  } catch {
    // Whoever is not gone yet writes there.
  }
}
process.exit(0);
