// The queue as a tree in the source control view, and the commands that go
// through it.

import { posix } from "node:path";
import * as vscode from "vscode";

import { commandShown } from "../../../ui/src/model/doubts";
import { type By, type Group, filesOf, groups } from "../../../ui/src/model/groups";
import { type Change, type LineChange, type Queue, isOfLines, rowOf, short, uriOf } from "./queue";
import { ago, authorsOf, what } from "./words";
import { type Shown, without } from "./shown";
import { hasLink, isFile, isMode, whatWhole } from "./whole";

type Row = { kind: "group"; group: Group<Change> } | { kind: "change"; change: Change };

const GROUPINGS: readonly By[] = ["file", "directory", "command", "session"];

/** The scheme of the documents that show a file without a change. */
const SCHEME = "touchmark-before";

/** Lines of a change that a tooltip shows. */
const MAX_LINES = 30;

export class Review implements vscode.TreeDataProvider<Row>, vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #queue: Queue;
  readonly #shown: Shown;
  readonly #view: vscode.TreeView<Row>;
  readonly #listening: vscode.Disposable;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.#changed.event;
  /** The change that was shown last. */
  #last: LineChange | undefined;
  /** The changes whose *Compare* is open, by the address of its left side. */
  readonly #compared = new Map<string, LineChange>();

  constructor(queue: Queue, shown: Shown) {
    this.#queue = queue;
    this.#shown = shown;
    this.#view = vscode.window.createTreeView("touchmark.review", { treeDataProvider: this, showCollapseAll: true });
    const on = (name: string, run: (changes: Change[]) => unknown) =>
      vscode.commands.registerCommand(`touchmark.review.${name}`, (row?: Row | Change) => {
        const changes = this.#meant(row);
        if (changes.length > 0) return run(changes);
        return vscode.window.showInformationMessage("No agent's change waits for your review here.");
      });
    this.#listening = vscode.Disposable.from(
      this.#view,
      queue.changed(() => this.#show()),
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.#compared.delete(uri.toString())),
      on("keep", async (changes) => (await isMeant("Keep", changes)) && this.#settle(changes, () => queue.keep(changes))),
      on("undo", async (changes) => (await isMeant("Undo", changes)) && this.#settle(changes, () => queue.undo(changes))),
      on("later", (changes) => this.#settle(changes, async () => queue.later(changes))),
      on("compare", ([change]) => change && isOfLines(change) && this.#compare(change)),
      on("open", ([change]) => change && isOfLines(change) && this.#open(change)),
      vscode.commands.registerCommand("touchmark.review.keepAll", async () => (await isMeant("Keep", queue.all())) && queue.keep(queue.all())),
      vscode.commands.registerCommand("touchmark.review.undoAll", async () => (await isMeant("Undo", queue.all())) && queue.undo(queue.all())),
      vscode.commands.registerCommand("touchmark.review.group", () => this.#group()),
      vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("touchmark.groupBy") && this.#changed.fire()),
      vscode.commands.registerCommand("touchmark.review.next", () => this.#go(1)),
      vscode.commands.registerCommand("touchmark.review.previous", () => this.#go(-1)),
    );
  }

  getChildren(row?: Row): Row[] {
    if (row?.kind === "change") return [];
    const group = (group: Group<Change>): Row => ({ kind: "group", group });
    if (row !== undefined) return [...row.group.inner.map(group), ...row.group.own.map((change): Row => ({ kind: "change", change }))];
    // Two folders may have files of the same path, and commands of the same name.
    const all = this.#queue.all();
    const daemons = [...new Set(all.map(({ daemon }) => daemon))];
    return daemons.flatMap((daemon) => groups(all.filter((change) => change.daemon === daemon), rowOf, groupBy()).map(group));
  }

  #groupItem({ by, name, all, files, isMany }: Group<Change>): vscode.TreeItem {
    const { Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
    const [first] = all;
    if (by === "file" && first !== undefined) {
      const uri = uriOf(first);
      const item = new vscode.TreeItem(uri, Expanded);
      item.description = dirname(vscode.workspace.asRelativePath(uri));
      item.iconPath = vscode.ThemeIcon.File;
      return item;
    }
    const label = by === "command" && first !== undefined ? commandShown(name, this.#queue.command(first.daemon, name)) : by === "edits" ? "edits, or several commands" : name;
    const item = new vscode.TreeItem(label, isMany ? Collapsed : Expanded);
    item.description = `${all.length} ${all.length === 1 ? "change" : "changes"}, ${files} ${files === 1 ? "file" : "files"}`;
    item.iconPath = new vscode.ThemeIcon({ directory: "folder", command: "terminal", session: "robot", edits: "edit", file: "file" }[by]);
    return item;
  }

  getTreeItem(shown: Row): vscode.TreeItem {
    if (shown.kind === "group") {
      const item = this.#groupItem(shown.group);
      item.contextValue = "group";
      return item;
    }
    const { change } = shown;
    const text = isOfLines(change) ? what(change.hunk) : whatWhole(change.file);
    const item = new vscode.TreeItem(text);
    const later = this.#queue.isLater(change);
    const row = rowOf(change);
    item.description = `${authorsOf(row)}, ${later ? "later" : ago(row.time)}`;
    item.iconPath = new vscode.ThemeIcon(later ? "clock" : icon(change));
    if (isOfLines(change)) {
      item.tooltip = new vscode.MarkdownString().appendCodeblock(difference(change), "diff");
      item.contextValue = "change";
      item.command = { command: "touchmark.review.open", title: "Open", arguments: [change] };
    } else {
      item.tooltip = text;
      item.contextValue = "fileChange";
      // A symlink would open as the file that it leads to.
      if (isFile(change.file)) item.command = { command: "vscode.open", title: "Open", arguments: [uriOf(change)] };
    }
    return item;
  }

  /** The text of a file without one change. */
  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const change = this.#compared.get(uri.toString());
    return change === undefined ? "" : without(await contentOf(change), change.hunk);
  }

  #show(): void {
    const count = this.#queue.all().length;
    this.#view.badge = count === 0 ? undefined : { value: count, tooltip: `${count} changes by agents to review` };
    this.#view.message = this.#queue.hasMore ? `The first ${count} changes. More follow when these are reviewed.` : undefined;
    void vscode.commands.executeCommand("setContext", "touchmark.hasChanges", count > 0);
    this.#changed.fire();
  }

  /** The changes that a command is about: those of the row, or the one at the cursor. */
  #meant(row?: Row | Change): Change[] {
    if (row !== undefined) return "kind" in row ? (row.kind === "group" ? row.group.all : [row.change]) : [row];
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined) return [];
    const own = this.#shown.at(editor.document, editor.selection.active.line);
    return own === undefined ? [] : [own];
  }

  /** Does something with changes, and goes on to the next one if it was done in the editor. */
  async #settle(changes: readonly Change[], work: () => Promise<void>): Promise<void> {
    await work();
    const editor = vscode.window.activeTextEditor;
    const [first] = changes;
    const isHere = first !== undefined && editor?.document.uri.toString() === uriOf(first).toString();
    if (isHere && isOfLines(first) && this.#queue.of(uriOf(first)).length > 0) await this.#go(1, first);
  }

  /** Asks how the view is to be grouped; the settings remember it. */
  async #group(): Promise<void> {
    const chosen = await vscode.window.showQuickPick(GROUPINGS, { title: "Group agents' changes by" });
    if (chosen !== undefined) await vscode.workspace.getConfiguration("touchmark").update("groupBy", chosen, vscode.ConfigurationTarget.Global);
  }

  /** Shows the next change of lines or the one before, in this file or another. After the last comes the first. */
  async #go(by: 1 | -1, from?: LineChange): Promise<void> {
    const open = this.#queue.all().filter((change) => !this.#queue.isLater(change));
    const all = open.filter(isOfLines);
    if (all.length === 0) {
      const none = open.length === 0 ? "No agent's change waits for your review." : "Only changes of modes and symlinks wait for your review: see the view Agents' Changes.";
      void vscode.window.showInformationMessage(none);
      return;
    }
    const editor = vscode.window.activeTextEditor;
    const here = editor?.document.uri.toString();
    const own = all.findIndex((change) => uriOf(change).toString() === here);
    // Where the editor shows no file of the list, the last change says where the user is.
    const last = all.findIndex(({ hunk }) => hunk.path === this.#last?.hunk.path && hunk.id === this.#last.hunk.id);
    let to = last !== -1 ? (last + by + all.length) % all.length : by === 1 ? 0 : all.length - 1;
    if (editor !== undefined && own !== -1) {
      const line = from === undefined ? editor.selection.active.line + 1 : from.hunk.lines.start - 1;
      const start = ({ hunk }: LineChange) => this.#shown.line(editor.document, hunk) + 1;
      const inFile = all.filter((change) => uriOf(change).toString() === here);
      const after = by === 1 ? inFile.findIndex((change) => start(change) > line) : inFile.findLastIndex((change) => start(change) < line);
      if (after !== -1) to = own + after;
      else to = (own + (by === 1 ? inFile.length : -1) + all.length) % all.length;
    }
    const next = all[to];
    if (next !== undefined) await this.#open(next);
  }

  async #open(change: LineChange): Promise<void> {
    this.#last = change;
    if (change.hunk.deleted) return this.#compare(change);
    const document = await vscode.workspace.openTextDocument(uriOf(change));
    const line = Math.min(this.#shown.line(document, change.hunk), document.lineCount - 1);
    const at = new vscode.Range(line, 0, line, 0);
    const editor = await vscode.window.showTextDocument(document, { selection: at });
    editor.revealRange(at, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }

  /** Shows a file without a change next to the file. */
  async #compare(change: LineChange): Promise<void> {
    const { hunk } = change;
    const uri = uriOf(change);
    const left = uri.with({ scheme: SCHEME, query: hunk.id });
    const right = hunk.deleted ? uri.with({ scheme: SCHEME, query: "" }) : uri;
    this.#compared.set(left.toString(), change);
    const title = `${vscode.workspace.asRelativePath(uri)}: ${what(hunk)} by ${authorsOf(hunk)}`;
    const at = Math.max(0, hunk.lines.start - 1);
    await vscode.commands.executeCommand("vscode.diff", left, right, title, { selection: new vscode.Range(at, 0, at, 0) });
  }

  dispose(): void {
    this.#listening.dispose();
    this.#changed.dispose();
  }
}

function groupBy(): By {
  const wanted = vscode.workspace.getConfiguration("touchmark").get<string>("groupBy");
  return GROUPINGS.find((known) => known === wanted) ?? "file";
}

/** Asks before several changes are kept or undone together, and says what that takes. */
async function isMeant(verb: "Keep" | "Undo", changes: readonly Change[]): Promise<boolean> {
  if (changes.length < 2) return true;
  const files = filesOf(changes.map(rowOf));
  const question = `${verb} ${changes.length} changes by agents in ${files.length} ${files.length === 1 ? "file" : "files"}?`;
  const all = `${verb} All`;
  return (await vscode.window.showWarningMessage(question, { modal: true, detail: short(files, 10, "\n") }, all)) === all;
}

/** The name of the icon of a change. */
function icon(change: Change): string {
  if (!isOfLines(change)) return hasLink(change.file) ? "file-symlink-file" : isMode(change.file) ? "key" : "diff-modified";
  return change.hunk.deleted ? "diff-removed" : change.hunk.created ? "diff-added" : "diff-modified";
}

function dirname(path: string): string {
  const directory = posix.dirname(path);
  return directory === "." ? "" : directory;
}

async function contentOf(change: LineChange): Promise<string> {
  if (change.hunk.deleted) return "";
  const bytes = await vscode.workspace.fs.readFile(uriOf(change));
  return new TextDecoder().decode(bytes);
}

/** A change as a patch shows it. */
function difference({ hunk }: LineChange): string {
  const side = (sign: string, text: string) => {
    const all = text === "" ? [] : text.replace(/\n$/, "").split("\n");
    const more = all.length > MAX_LINES ? [`  and ${all.length - MAX_LINES} lines more`] : [];
    return [...all.slice(0, MAX_LINES).map((line) => sign + line), ...more];
  };
  return [...side("-", hunk.before), ...side("+", hunk.after)].join("\n");
}
