// What the user does: files opened and closed, unsaved changes, saves with the
// hash of the bytes on disk (ATTR-2).

import { readFile } from "node:fs/promises";
import * as vscode from "vscode";

import { hashOf } from "../../../bindings/typescript/src/hash";
import type { Daemon } from "./daemon";
import { type Edit, edited, unchanged, unsavedLines } from "./unsaved";

export class Reports implements vscode.Disposable {
  readonly #daemon: Daemon;
  /** Files that the daemon was told are dirty, and in which lines. */
  readonly #dirty = new Map<string, string>();
  /** What is known of a document's unsaved changes; `null` of one whose changes are older. */
  readonly #edits = new WeakMap<vscode.TextDocument, Edit | null>();
  readonly #listening: vscode.Disposable;

  constructor(daemon: Daemon) {
    this.#daemon = daemon;
    this.#listening = vscode.Disposable.from(
      vscode.workspace.onDidOpenTextDocument((document) => this.#opened(document)),
      vscode.workspace.onDidCloseTextDocument((document) => this.#closed(document)),
      vscode.workspace.onDidChangeTextDocument((event) => {
        this.#edited(event);
        this.#changed(event.document);
      }),
      vscode.workspace.onDidSaveTextDocument((document) => void this.#saved(document)),
      // What a connection has called dirty is forgotten when it ends.
      daemon.happened(({ kind }) => kind !== "event" && this.#all()),
    );
  }

  /** What is known of a document's unsaved changes; null or undefined if nothing is. */
  edit(document: vscode.TextDocument): Edit | null | undefined {
    return this.#edits.get(document);
  }

  #all(): void {
    this.#dirty.clear();
    for (const document of vscode.workspace.textDocuments) {
      this.#opened(document);
      this.#changed(document);
    }
  }

  #edited({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    const known = this.#edits.get(document);
    if (known === undefined || contentChanges.length === 0) return;
    this.#edits.set(document, known && edited(known, document.lineCount, contentChanges));
  }

  #opened({ uri }: vscode.TextDocument): void {
    const path = this.#daemon.nameOf(uri);
    if (path !== undefined) void this.#daemon.ask((client) => client.editorDidOpen({ path }));
  }

  #closed({ uri }: vscode.TextDocument): void {
    const path = this.#daemon.nameOf(uri);
    if (path === undefined) return;
    this.#dirty.delete(path);
    void this.#daemon.ask((client) => client.editorDidClose({ path }));
  }

  /** Also called when a file on disk was loaded again: the document is not dirty then. */
  #changed(document: vscode.TextDocument): void {
    const { uri, isDirty, lineCount } = document;
    if (!isDirty) this.#edits.set(document, unchanged(lineCount));
    const edit = this.#edits.get(document) ?? null;
    if (isDirty) this.#edits.set(document, edit);
    const path = this.#daemon.nameOf(uri);
    if (path === undefined) return;
    const lines = isDirty && edit ? unsavedLines(edit) : null;
    const told = isDirty ? JSON.stringify(lines) : undefined;
    if (this.#dirty.get(path) === told) return;
    if (told === undefined) this.#dirty.delete(path);
    else this.#dirty.set(path, told);
    void this.#daemon.ask((client) => client.editorDirty({ path, dirty: isDirty, lines }));
  }

  async #saved(document: vscode.TextDocument): Promise<void> {
    const path = this.#daemon.nameOf(document.uri);
    if (path === undefined) return;
    try {
      // The bytes, not the text: encoding and line ends count.
      const hash = hashOf(await readFile(document.uri.fsPath));
      await this.#daemon.ask((client) => client.editorDidSave({ path, hash }));
    } catch {
      // Gone already.
    }
    this.#changed(document);
  }

  dispose(): void {
    this.#listening.dispose();
  }
}
