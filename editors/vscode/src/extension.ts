// Puts the parts together: one set for each folder of the window.

import * as vscode from "vscode";

import { Agents } from "./agents";
import { Authors } from "./authors";
import { Daemon } from "./daemon";
import { Queue, redo, undoSession } from "./queue";
import { Reports } from "./reports";
import { Review } from "./review";
import { Saves } from "./saves";
import { Shown } from "./shown";
import { type Row, Sessions, describe, history, holders } from "./views";

interface Parts extends vscode.Disposable {
  daemon: Daemon;
  reports: Reports;
}

export function activate(context: vscode.ExtensionContext): void {
  const folders = new Map<string, Parts>();
  const daemons = () => [...folders.values()].map(({ daemon }) => daemon);
  const sessions = new Sessions(daemons);
  const item = vscode.window.createStatusBarItem("touchmark", vscode.StatusBarAlignment.Left, 0);
  item.name = "touchmark";
  item.command = "touchmark.history";

  const around = (uri: vscode.Uri | undefined) => {
    const folder = uri && vscode.workspace.getWorkspaceFolder(uri);
    const parts = folder && folders.get(folder.uri.toString());
    const path = uri && parts?.daemon.nameOf(uri);
    return parts !== undefined && path !== undefined ? { ...parts, path } : undefined;
  };

  const edit = (document: vscode.TextDocument) => around(document.uri)?.reports.edit(document);
  const queue = new Queue(daemons);
  const shown = new Shown(queue, edit);
  const authors = new Authors((uri) => {
    const here = around(uri);
    return here && { daemon: here.daemon, path: here.path, edit };
  });

  // Answers may overtake each other; the last question's is shown.
  let asked = 0;
  const show = async () => {
    const mine = ++asked;
    const uri = vscode.window.activeTextEditor?.document.uri;
    const here = around(uri);
    if (uri === undefined || here === undefined || !here.daemon.isUp) return item.hide();
    const text = await describe(here.daemon, here.path);
    if (mine !== asked) return;
    item.text = `$(robot) ${text}`;
    item.tooltip = `touchmark: who changed ${here.path} last`;
    item.show();
  };
  const refresh = () => {
    sessions.refresh();
    authors.refresh();
    void show();
  };
  const lookAgain = () => {
    queue.nothingIsLater();
    queue.refresh();
    refresh();
  };

  const open = (folder: vscode.WorkspaceFolder) => {
    if (folder.uri.scheme !== "file") return;
    const daemon = new Daemon(folder);
    const agents = new Agents(daemon, vscode.Uri.joinPath(context.extensionUri, "media"));
    const reports = new Reports(daemon);
    const heard = daemon.happened((next) => {
      refresh();
      if (next.kind !== "event" || next.event.type === "version") queue.refresh();
    });
    const all = vscode.Disposable.from(daemon, agents, reports, new Saves(daemon, agents), heard);
    folders.set(folder.uri.toString(), { daemon, reports, dispose: () => all.dispose() });
  };
  const close = (folder: vscode.WorkspaceFolder) => {
    folders.get(folder.uri.toString())?.dispose();
    folders.delete(folder.uri.toString());
  };
  const again = () => {
    for (const folder of vscode.workspace.workspaceFolders ?? []) {
      close(folder);
      open(folder);
    }
    lookAgain();
  };

  const onFile = (run: (here: NonNullable<ReturnType<typeof around>>) => Promise<void>) => async () => {
    const here = around(vscode.window.activeTextEditor?.document.uri);
    if (here === undefined || !here.daemon.isUp) {
      void vscode.window.showInformationMessage("touchmark: no daemon answers for this file.");
    } else await run(here);
  };

  context.subscriptions.push(
    item,
    sessions,
    queue,
    shown,
    authors,
    new Review(queue, shown),
    { dispose: () => folders.forEach((parts) => parts.dispose()) },
    vscode.window.registerTreeDataProvider("touchmark.sessions", sessions),
    vscode.commands.registerCommand("touchmark.refresh", lookAgain),
    vscode.commands.registerCommand("touchmark.undoSession", (row?: Row) => row?.kind === "session" && undoSession(row.daemon, row.id, row.session)),
    vscode.commands.registerCommand("touchmark.redo", async () => {
      await Promise.all(daemons().map(redo));
      await queue.look();
    }),
    vscode.commands.registerCommand("touchmark.history", onFile(({ daemon, path }) => history(daemon, path))),
    vscode.commands.registerCommand("touchmark.tell", onFile(({ daemon, path }) => tell(daemon, path))),
    vscode.window.onDidChangeActiveTextEditor(() => void show()),
    vscode.workspace.onDidChangeWorkspaceFolders(({ added, removed }) => {
      removed.forEach(close);
      added.forEach(open);
      lookAgain();
    }),
    // A commit by the user keeps what it contains, and makes no event.
    vscode.window.onDidChangeWindowState(({ focused }) => focused && queue.refresh()),
    vscode.workspace.onDidGrantWorkspaceTrust(again),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("touchmark.path") || change.affectsConfiguration("touchmark.start")) again();
      if (change.affectsConfiguration("touchmark.reviewInEditor")) shown.draw();
    }),
  );
  vscode.workspace.workspaceFolders?.forEach(open);
}

/** Leaves a note with the sessions that hold the file; their agents get it at their next prompt. */
async function tell(daemon: Daemon, path: string): Promise<void> {
  const held = await holders(daemon, path);
  if (held.length === 0) {
    void vscode.window.showInformationMessage(`No agent holds a copy of ${path}.`);
    return;
  }
  const note = await vscode.window.showInputBox({ title: `Tell ${held.map(({ session }) => session).join(", ")} about ${path}`, prompt: "What to say; may be empty" });
  if (note === undefined) return;
  const stored = await Promise.all(held.map(({ session }) => daemon.ask((client) => client.warningStore({ session, files: [path], note: note || null }))));
  const count = stored.filter((answer) => answer !== undefined).length;
  void vscode.window.showInformationMessage(`${count} of ${held.length} sessions will be told at their next prompt.`);
}
