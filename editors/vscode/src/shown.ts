// Changes to review in the editor: a background on their lines, and above them
// their author with *Keep*, *Undo*, *Later* and *Compare*.

import * as vscode from "vscode";

import type { ReviewHunk } from "../../../bindings/typescript/src/generated/protocol";
import type { LineChange, Queue } from "./queue";
import { type Edit, inDocument } from "./unsaved";
import { ago, authorsOf, what } from "./words";

export class Shown implements vscode.CodeLensProvider, vscode.Disposable {
  readonly #queue: Queue;
  /** What is known of a document's unsaved changes. */
  readonly #edit: (document: vscode.TextDocument) => Edit | null | undefined;
  readonly #background: vscode.TextEditorDecorationType;
  readonly #listening: vscode.Disposable;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.#changed.event;

  constructor(queue: Queue, edit: (document: vscode.TextDocument) => Edit | null | undefined) {
    this.#queue = queue;
    this.#edit = edit;
    this.#background = vscode.window.createTextEditorDecorationType({
      isWholeLine: true,
      backgroundColor: new vscode.ThemeColor("touchmark.changeBackground"),
      overviewRulerColor: new vscode.ThemeColor("touchmark.agentLine"),
      overviewRulerLane: vscode.OverviewRulerLane.Left,
    });
    this.#listening = vscode.Disposable.from(
      this.#background,
      queue.changed(() => this.draw()),
      vscode.languages.registerCodeLensProvider({ scheme: "file" }, this),
      vscode.window.onDidChangeVisibleTextEditors(() => this.draw()),
      vscode.workspace.onDidChangeTextDocument(({ document }) => queue.of(document.uri).length > 0 && this.draw()),
      vscode.window.onDidChangeActiveTextEditor(() => this.draw()),
    );
  }

  /** The document's line, from 0, at which a change begins. */
  line(document: vscode.TextDocument, hunk: ReviewHunk): number {
    return this.#range(document, hunk)?.[0] ?? Math.max(0, hunk.lines.start - 1);
  }

  /** The change at a line of a document, counted from 0. */
  at(document: vscode.TextDocument, line: number): LineChange | undefined {
    const own = this.#queue.of(document.uri);
    if (own.length === 1) return own[0];
    return own.find(({ hunk }) => {
      const [first, last] = this.#range(document, hunk) ?? [-1, -1];
      return line >= first && line <= last;
    });
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    if (!isWanted(document)) return [];
    return this.#queue.of(document.uri).flatMap((change) => {
      const range = this.#range(document, change.hunk);
      if (range === undefined) return [];
      const at = new vscode.Range(range[0], 0, range[0], 0);
      const lens = (title: string, command: string, tooltip: string) =>
        new vscode.CodeLens(at, { title, tooltip, command: `touchmark.review.${command}`, arguments: [change] });
      return [
        lens(`$(robot)\u00a0${authorsOf(change.hunk)}, ${ago(change.hunk.time)}: ${what(change.hunk)}`, "compare", "Compare the file with what it is without this change"),
        lens("$(check)\u00a0Keep", "keep", "The change stays, and leaves the list"),
        lens("$(discard)\u00a0Undo", "undo", "The change goes; lines of others stay"),
        lens("Later", "later", "The change stays in the list"),
      ];
    });
  }

  /** Draws the backgrounds, and has the lines above the changes requested again. */
  draw(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      const { document } = editor;
      if (document.uri.scheme !== "file") continue;
      const ranges = (isWanted(document) ? this.#queue.of(document.uri) : []).flatMap(({ hunk }) => {
        const range = hunk.after === "" ? undefined : this.#range(document, hunk);
        return range === undefined ? [] : [new vscode.Range(range[0], 0, range[1], 0)];
      });
      editor.setDecorations(this.#background, ranges);
    }
    const active = vscode.window.activeTextEditor?.document;
    const isHere = active !== undefined && this.#queue.of(active.uri).length > 0;
    void vscode.commands.executeCommand("setContext", "touchmark.changesHere", isHere);
    this.#changed.fire();
  }

  /** The first and the last line of a change in the document, from 0; undefined where the document does not have these lines. */
  #range(document: vscode.TextDocument, { lines, after }: ReviewHunk): [number, number] | undefined {
    const edit = document.isDirty ? this.#edit(document) : undefined;
    if (document.isDirty && !edit) return undefined;
    const place = (line: number) => {
      const saved = Math.max(0, line - 1);
      const now = edit ? inDocument(edit, saved) : saved;
      return now === undefined ? undefined : Math.min(now, document.lineCount - 1);
    };
    const [first, last] = [place(lines.start), place(lines.end)];
    if (first === undefined || last === undefined) return undefined;
    // The daemon may have seen a newer content than the one that was loaded.
    const text = document.getText(new vscode.Range(first, 0, last + 1, 0));
    const isThere = after === "" || normal(text) === normal(after);
    return isThere ? [first, last] : undefined;
  }

  dispose(): void {
    this.#listening.dispose();
    this.#changed.dispose();
  }
}

/** A text without differences of line ends. */
function normal(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(/\n$/, "");
}

function isWanted({ uri }: vscode.TextDocument): boolean {
  return vscode.workspace.getConfiguration("touchmark", uri).get("reviewInEditor", true);
}

/** A text without a change that it has. */
export function without(text: string, { lines, before, after }: Pick<ReviewHunk, "lines" | "before" | "after">): string {
  const all = text.split(/(?<=\n)/);
  // A change that only removed lines names the line before them.
  const [at, count] = after === "" ? [lines.end, 0] : [lines.start - 1, lines.end - lines.start + 1];
  return [...all.slice(0, at), before, ...all.slice(at + count)].join("");
}
