// What the user does: files opened and closed, unsaved changes, saves with the
// hash of the bytes on disk (ATTR-2).

import { readFile } from "node:fs/promises";
import * as vscode from "vscode";

import { hashOf } from "../../../bindings/typescript/src/hash";
import type { Daemon } from "./daemon";

export class Reports implements vscode.Disposable {
  readonly #daemon: Daemon;
  /** Files that the daemon was told are dirty. */
  readonly #dirty = new Set<string>();
  readonly #listening: vscode.Disposable;

  constructor(daemon: Daemon) {
    this.#daemon = daemon;
    this.#listening = vscode.Disposable.from(
      vscode.workspace.onDidOpenTextDocument((document) => this.#opened(document)),
      vscode.workspace.onDidCloseTextDocument((document) => this.#closed(document)),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.#changed(document)),
      vscode.workspace.onDidSaveTextDocument((document) => void this.#saved(document)),
      // What a connection has called dirty is forgotten when it ends.
      daemon.happened(({ kind }) => kind !== "event" && this.#all()),
    );
  }

  #all(): void {
    this.#dirty.clear();
    for (const document of vscode.workspace.textDocuments) {
      this.#opened(document);
      this.#changed(document);
    }
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
  #changed({ uri, isDirty }: vscode.TextDocument): void {
    const path = this.#daemon.nameOf(uri);
    if (path === undefined || this.#dirty.has(path) === isDirty) return;
    if (isDirty) this.#dirty.add(path);
    else this.#dirty.delete(path);
    void this.#daemon.ask((client) => client.editorDirty({ path, dirty: isDirty }));
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
