// Who wrote a line: when the mouse is on it, and after the end of the cursor's
// line if the user wants that.

import * as vscode from "vscode";

import type { BlameLine } from "../../../bindings/typescript/src/generated/protocol";
import type { Daemon } from "./daemon";
import { type Edit, inSavedFile } from "./unsaved";
import { ago, writerOf } from "./words";

/** How long the cursor stays in a line before its author is requested, in milliseconds. */
const STAY = 150;

type Find = (uri: vscode.Uri) => { daemon: Daemon; path: string; edit: (document: vscode.TextDocument) => Edit | null | undefined } | undefined;

export class Authors implements vscode.HoverProvider, vscode.Disposable {
  readonly #find: Find;
  readonly #after: vscode.TextEditorDecorationType;
  readonly #listening: vscode.Disposable;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(find: Find) {
    this.#find = find;
    this.#after = vscode.window.createTextEditorDecorationType({
      after: { margin: "0 0 0 3em", color: new vscode.ThemeColor("editorCodeLens.foreground") },
    });
    this.#listening = vscode.Disposable.from(
      this.#after,
      vscode.languages.registerHoverProvider({ scheme: "file" }, this),
      vscode.window.onDidChangeTextEditorSelection(() => this.refresh()),
      vscode.window.onDidChangeActiveTextEditor(() => this.refresh()),
      vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("touchmark.lineAuthor") && this.refresh()),
    );
  }

  async provideHover(document: vscode.TextDocument, { line }: vscode.Position): Promise<vscode.Hover | undefined> {
    if (wanted(document) === "off") return undefined;
    const row = await this.#author(document, line);
    if (row === undefined) return undefined;
    const text = new vscode.MarkdownString(undefined, true);
    text.supportThemeIcons = true;
    text.isTrusted = { enabledCommands: ["touchmark.history"] };
    text.appendMarkdown(`$(${row.author.kind === "agent" ? "robot" : "account"}) `).appendText(`${writerOf(row)} wrote this line, ${ago(row.time)}`);
    text.appendMarkdown(" [History](command:touchmark.history)");
    return new vscode.Hover(text);
  }

  /** Shows the author of the cursor's line again, soon. */
  refresh(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#draw(), STAY);
  }

  async #draw(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined) return;
    const { line } = editor.selection.active;
    const row = wanted(editor.document) === "inline" ? await this.#author(editor.document, line) : undefined;
    if (row === undefined || line !== editor.selection.active.line) return editor.setDecorations(this.#after, []);
    const end = editor.document.lineAt(line).range.end;
    const contentText = `${writerOf(row)}, ${ago(row.time)}`;
    editor.setDecorations(this.#after, [{ range: new vscode.Range(end, end), renderOptions: { after: { contentText } } }]);
  }

  /** The author of a line, counted from 0; undefined if the line is not saved, or older than what is on record. */
  async #author(document: vscode.TextDocument, line: number): Promise<BlameLine | undefined> {
    const here = this.#find(document.uri);
    const edit = document.isDirty ? here?.edit(document) : undefined;
    if (here === undefined || (document.isDirty && !edit)) return undefined;
    const saved = edit ? inSavedFile(edit, line) : line;
    if (saved === undefined) return undefined;
    const range = { start: saved + 1, end: saved + 1 };
    const row = (await here.daemon.ask((client) => client.fileBlame({ path: here.path, range })))?.lines[0];
    return row === undefined || row.author.kind === "unknown" ? undefined : row;
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.#listening.dispose();
  }
}

function wanted({ uri }: vscode.TextDocument): string {
  return vscode.workspace.getConfiguration("touchmark", uri).get("lineAuthor", "hover");
}
