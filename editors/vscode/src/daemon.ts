// The way to one folder's daemon: a subscription that is made again, and what
// the editor has to say. Nothing here holds the editor up.

import * as vscode from "vscode";

import { Feed, type Next } from "../../../bindings/typescript/src/feed";
import { type Client, connect } from "../../../bindings/typescript/src/client";
import { Workspace } from "../../../bindings/typescript/src/workspace";

/** How long to wait before another daemon is looked for, in milliseconds. */
const LOOK_AGAIN = 5_000;

/** How long the editor's own questions may take, in milliseconds. */
const PATIENCE = 2_000;

/** One folder of the window, and the daemon of the workspace that it is in. */
export class Daemon implements vscode.Disposable {
  readonly folder: vscode.WorkspaceFolder;
  readonly #happened = new vscode.EventEmitter<Next>();
  /** What the daemon told; `reconnected` and `missed` after a pause. */
  readonly happened = this.#happened.event;
  #feed: Feed | undefined;
  #client: Client | undefined;
  #workspace: Workspace | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #disposed = false;

  constructor(folder: vscode.WorkspaceFolder) {
    this.folder = folder;
    void this.#follow();
  }

  /** Whether one answers. */
  get isUp(): boolean {
    return this.#client !== undefined && this.#client.ended === undefined;
  }

  /** The connection, where there is one. */
  get client(): Client | undefined {
    return this.isUp ? this.#client : undefined;
  }

  /** A file's name in the workspace, if it is inside. */
  nameOf(uri: vscode.Uri): string | undefined {
    const root = this.#workspace?.root;
    if (uri.scheme !== "file" || root === undefined || !uri.fsPath.startsWith(`${root}/`)) return undefined;
    return uri.fsPath.slice(root.length + 1);
  }

  /** The place of a name in the workspace. */
  uriOf(name: string): vscode.Uri {
    return vscode.Uri.file(`${this.#workspace?.root ?? this.folder.uri.fsPath}/${name}`);
  }

  /** Asks, if a daemon answers; what fails is as if none did. */
  async ask<T>(ask: (client: Client) => Promise<T>): Promise<T | undefined> {
    const client = this.client;
    if (client === undefined) return undefined;
    return ask(client).catch(() => undefined);
  }

  async #follow(): Promise<void> {
    try {
      const options = await this.#options();
      this.#client = await connect({ ...options, role: "editor" });
      this.#feed = await Feed.open({ ...options, start: false, patience: 0 });
      if (this.#disposed) return this.#close();
      this.#happened.fire({ kind: "missed" });
      for await (const next of this.#feed) this.#happened.fire(next);
    } catch {
      // None runs, or it ended: looked for again.
    }
    this.#close();
    if (this.#disposed) return;
    this.#happened.fire({ kind: "missed" });
    this.#timer = setTimeout(() => void this.#follow(), LOOK_AGAIN);
  }

  async #options() {
    const settings = vscode.workspace.getConfiguration("touchmark", this.folder);
    const path = settings.get<string>("path");
    const environment = path ? { ...process.env, TOUCHMARK_BIN: path } : process.env;
    this.#workspace = await Workspace.find(this.folder.uri.fsPath, environment);
    return {
      workspace: this.#workspace,
      environment,
      withinMs: PATIENCE,
      program: { name: "vscode", version: vscode.version },
      // A workspace that is not trusted does not have programs started.
      start: vscode.workspace.isTrusted && settings.get("start", false),
    };
  }

  #close(): void {
    this.#feed?.close();
    this.#client?.close();
    this.#feed = this.#client = undefined;
  }

  dispose(): void {
    this.#disposed = true;
    clearTimeout(this.#timer);
    this.#close();
    this.#happened.dispose();
  }
}
