// One notification when an agent changes a file in which the user has unsaved
// changes: when that happens, or before a save if it was missed. No extension
// can stop a save. VS Code itself refuses to overwrite a file that is newer than
// what it loaded, until the user chooses *Overwrite*.

import { readFile } from "node:fs/promises";
import * as vscode from "vscode";

import { hashOf } from "../../../bindings/typescript/src/hash";
import type { Event, Version } from "../../../bindings/typescript/src/generated/protocol";
import type { Agents } from "./agents";
import type { Daemon } from "./daemon";
import { authorOf } from "./words";

/** How long a save may be held up for the answer, which VS Code bounds as well. */
const PATIENCE = 1_500;

export class Saves implements vscode.Disposable {
  readonly #daemon: Daemon;
  readonly #agents: Agents;
  /** The bytes of each file as this window knows them: loaded or saved by it. */
  readonly #known = new Map<string, string>();
  /** The bytes that the user was warned of. A save after that is meant to overwrite them. */
  readonly #told = new Map<string, string>();
  /** Files whose warning is still shown. */
  readonly #shown = new Set<string>();
  readonly #listening: vscode.Disposable;

  constructor(daemon: Daemon, agents: Agents) {
    this.#daemon = daemon;
    this.#agents = agents;
    this.#listening = vscode.Disposable.from(
      daemon.happened((next) => next.kind === "event" && this.#hear(next.event)),
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

  #hear(event: Event): void {
    if (event.type !== "version" || event.version.author.kind !== "agent") return;
    const { version } = event;
    const document = vscode.workspace.textDocuments.find(({ uri }) => this.#daemon.nameOf(uri) === version.path);
    if (document?.isDirty) void this.#warn(document, version);
  }

  /** Shows the warning, unless it is still shown for an earlier change of the file. Returns when it was answered. */
  async #warn({ uri }: vscode.TextDocument, version: Version): Promise<void> {
    const key = uri.toString();
    if (version.hash) this.#told.set(key, version.hash);
    if (this.#shown.has(key)) return;
    this.#shown.add(key);
    const compare = "Compare";
    const did = version.kind === "deleted" ? "deleted" : "changed";
    const text = `${authorOf(version)} ${did} ${version.path} on disk. You have unsaved changes in it.`;
    const answer = await vscode.window.showWarningMessage(text, ...(version.kind === "deleted" ? [] : [compare]));
    this.#shown.delete(key);
    if (answer !== compare) return;
    await vscode.window.showTextDocument(uri);
    await vscode.commands.executeCommand("workbench.files.action.compareWithSaved");
  }

  async #before(document: vscode.TextDocument): Promise<void> {
    const newest = this.#agents.newest(document.uri);
    const key = document.uri.toString();
    const known = this.#known.get(key);
    const wanted = vscode.workspace.getConfiguration("touchmark", document.uri).get("warnBeforeSave", true);
    if (!wanted || known === undefined || newest?.author.kind !== "agent") return;
    const hash = await onDisk(document.uri);
    if (hash === undefined || hash === known || hash !== newest.hash || hash === this.#told.get(key)) return;
    await Promise.race([this.#warn(document, newest), new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
  }

  dispose(): void {
    this.#listening.dispose();
  }
}

async function onDisk(uri: vscode.Uri): Promise<string | undefined> {
  return readFile(uri.fsPath).then(hashOf, () => undefined);
}
