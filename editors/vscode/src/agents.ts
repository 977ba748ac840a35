// What agents did to files: who wrote each last, and the lines they changed
// since the user last saved.

import * as vscode from "vscode";

import type { Event, Version } from "../../../bindings/typescript/src/generated/protocol";
import type { Daemon } from "./daemon";
import { changedLines } from "./lines";

export class Agents implements vscode.Disposable {
  readonly #daemon: Daemon;
  /** The newest version of each file, as far as it was told. */
  readonly #newest = new Map<string, Version>();
  /** The text of each open file as the user last had it on disk. */
  readonly #before = new Map<string, string>();
  readonly #mark: vscode.TextEditorDecorationType;
  readonly #listening: vscode.Disposable;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly changed = this.#changed.event;

  constructor(daemon: Daemon, media: vscode.Uri) {
    this.#daemon = daemon;
    this.#mark = vscode.window.createTextEditorDecorationType({
      gutterIconPath: vscode.Uri.joinPath(media, "agent.svg"),
      gutterIconSize: "contain",
      overviewRulerColor: new vscode.ThemeColor("touchmark.agentLine"),
      overviewRulerLane: vscode.OverviewRulerLane.Left,
    });
    this.#listening = vscode.Disposable.from(
      daemon.happened((next) => next.kind === "event" && this.#hear(next.event)),
      vscode.workspace.onDidOpenTextDocument((document) => this.#keep(document)),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.#before.delete(uri.toString())),
      vscode.workspace.onDidSaveTextDocument((document) => this.#keep(document)),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.#draw(document)),
      vscode.window.onDidChangeVisibleTextEditors((editors) => editors.forEach(({ document }) => this.#draw(document))),
    );
    vscode.workspace.textDocuments.forEach((document) => this.#keep(document));
  }

  /** Who wrote a file last. */
  newest(uri: vscode.Uri): Version | undefined {
    const path = this.#daemon.nameOf(uri);
    return path === undefined ? undefined : this.#newest.get(path);
  }

  #hear(event: Event): void {
    if (event.type !== "version") return;
    const { version } = event;
    this.#newest.set(version.path, version);
    const document = vscode.workspace.textDocuments.find(({ uri }) => this.#daemon.nameOf(uri) === version.path);
    if (document !== undefined && version.author.kind !== "agent" && !document.isDirty) this.#keep(document);
    if (document !== undefined) this.#draw(document);
    this.#changed.fire();
  }

  /** What the user has now is what agents' lines are told against. */
  #keep(document: vscode.TextDocument): void {
    if (this.#daemon.nameOf(document.uri) === undefined && document.uri.scheme !== "file") return;
    this.#before.set(document.uri.toString(), document.getText());
    this.#draw(document);
  }

  #draw(document: vscode.TextDocument): void {
    const byAgent = this.newest(document.uri)?.author.kind === "agent";
    const before = this.#before.get(document.uri.toString());
    for (const editor of vscode.window.visibleTextEditors) {
      if (editor.document !== document) continue;
      // While the user types, the lines are not only an agent's.
      const lines = byAgent && before !== undefined && !document.isDirty ? changedLines(before, document.getText()) : [];
      editor.setDecorations(this.#mark, lines.map((line) => document.lineAt(Math.min(line, document.lineCount - 1)).range));
    }
  }

  dispose(): void {
    this.#listening.dispose();
    this.#mark.dispose();
    this.#changed.dispose();
  }
}
