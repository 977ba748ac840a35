// A warning before a save over an agent's newer bytes. No extension can stop a
// save. VS Code itself refuses to overwrite a file that is newer than what it
// loaded, unless it is told to; this says beforehand who wrote what is there.

import { readFile } from "node:fs/promises";
import * as vscode from "vscode";

import { hashOf } from "../../../bindings/typescript/src/hash";
import type { Agents } from "./agents";
import { authorOf } from "./views";

/** How long a save may be held up for the answer, which VS Code bounds as well. */
const PATIENCE = 1_500;

export class Saves implements vscode.Disposable {
  readonly #agents: Agents;
  /** The bytes of each file as this window knows them: loaded or saved by it. */
  readonly #known = new Map<string, string>();
  /** The bytes that the user was warned of. To save again is the answer: those are to be overwritten. */
  readonly #told = new Map<string, string>();
  readonly #listening: vscode.Disposable;

  constructor(agents: Agents) {
    this.#agents = agents;
    this.#listening = vscode.Disposable.from(
      vscode.workspace.onDidOpenTextDocument((document) => void this.#learn(document)),
      vscode.workspace.onDidSaveTextDocument((document) => void this.#learn(document)),
      // Loaded again from disk.
      vscode.workspace.onDidChangeTextDocument(({ document }) => !document.isDirty && void this.#learn(document)),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => {
        this.#known.delete(uri.toString());
        this.#told.delete(uri.toString());
      }),
      vscode.workspace.onWillSaveTextDocument((event) => event.waitUntil(this.#before(event.document))),
    );
    vscode.workspace.textDocuments.forEach((document) => void this.#learn(document));
  }

  async #learn({ uri, isDirty }: vscode.TextDocument): Promise<void> {
    if (uri.scheme !== "file" || isDirty) return;
    const hash = await onDisk(uri);
    if (hash !== undefined) this.#known.set(uri.toString(), hash);
  }

  async #before(document: vscode.TextDocument): Promise<void> {
    const newest = this.#agents.newest(document.uri);
    const key = document.uri.toString();
    const known = this.#known.get(key);
    const wanted = vscode.workspace.getConfiguration("touchmark", document.uri).get("warnBeforeSave", true);
    if (!wanted || known === undefined || newest?.author.kind !== "agent") return;
    const hash = await onDisk(document.uri);
    if (hash === undefined || hash === known || hash !== newest.hash || hash === this.#told.get(key)) return;
    this.#told.set(key, hash);
    const compare = "Compare";
    const asked = vscode.window.showWarningMessage(
      `${authorOf(newest)} has written ${newest.path} since you loaded it. Overwriting the file replaces that.`,
      compare,
    );
    void asked.then((answer) => {
      if (answer === compare) void vscode.commands.executeCommand("workbench.files.action.compareWithSaved");
    });
    await Promise.race([asked, new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
  }

  dispose(): void {
    this.#listening.dispose();
  }
}

async function onDisk(uri: vscode.Uri): Promise<string | undefined> {
  return readFile(uri.fsPath).then(hashOf, () => undefined);
}
