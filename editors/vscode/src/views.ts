// What is shown: the status bar item, the tree of sessions, a file's history.

import * as vscode from "vscode";

import type { FileState, Version } from "../../../bindings/typescript/src/generated/protocol";
import type { Daemon } from "./daemon";

const ICONS: Record<FileState["state"], string> = {
  fresh: "check",
  stale: "warning",
  deleted: "trash",
  unread: "circle-outline",
  unreadable: "error",
};

/** Who wrote, in a few words. */
export function authorOf({ author }: Pick<Version, "author">): string {
  return author.kind === "agent" ? (author.session ?? "an agent") : author.kind === "user" ? "you or another program" : "unknown";
}

type Row =
  | { kind: "session"; daemon: Daemon; session: string; stale: number }
  | { kind: "file"; daemon: Daemon; file: FileState };

/** Sessions, each with its files, the stale ones first. */
export class Sessions implements vscode.TreeDataProvider<Row> {
  readonly #daemons: () => Daemon[];
  readonly #changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.#changed.event;
  #later: ReturnType<typeof setTimeout> | undefined;

  constructor(daemons: () => Daemon[]) {
    this.#daemons = daemons;
  }

  /** Events come in bursts: one look for all. */
  refresh(): void {
    this.#later ??= setTimeout(() => {
      this.#later = undefined;
      this.#changed.fire();
    }, 200);
  }

  async getChildren(row?: Row): Promise<Row[]> {
    if (row === undefined) return (await Promise.all(this.#daemons().map((daemon) => this.#sessions(daemon)))).flat();
    if (row.kind === "file") return [];
    const answer = await row.daemon.ask((client) => client.fileStatus({ session: row.session }));
    const rank = (file: FileState) => (file.state === "stale" ? 0 : 1);
    const files = [...(answer?.files ?? [])].sort((one, other) => rank(one) - rank(other) || one.path.localeCompare(other.path));
    return files.map((file) => ({ kind: "file", daemon: row.daemon, file }));
  }

  async #sessions(daemon: Daemon): Promise<Row[]> {
    const answer = await daemon.ask((client) => client.sessionList());
    return (answer?.sessions ?? []).filter(({ open }) => open).map(({ session, stale }) => ({ kind: "session", daemon, session, stale }));
  }

  getTreeItem(row: Row): vscode.TreeItem {
    if (row.kind === "session") {
      const item = new vscode.TreeItem(row.session, vscode.TreeItemCollapsibleState.Expanded);
      item.iconPath = new vscode.ThemeIcon("robot");
      if (row.stale > 0) item.description = `${row.stale} stale`;
      return item;
    }
    const { file, daemon } = row;
    const item = new vscode.TreeItem(daemon.uriOf(file.path));
    item.label = file.path;
    item.description = file.state;
    item.iconPath = new vscode.ThemeIcon(ICONS[file.state]);
    const by = (file.changedBy ?? []).map((author) => authorOf({ author })).join(", ");
    if (by !== "") item.tooltip = `${file.path}: changed by ${by}`;
    item.command = { command: "vscode.open", title: "Open", arguments: [daemon.uriOf(file.path)] };
    return item;
  }

  dispose(): void {
    clearTimeout(this.#later);
    this.#changed.dispose();
  }
}

/** Who changed the file last, and which agents hold an old copy of it. */
export async function describe(daemon: Daemon, path: string, newest: Version | undefined): Promise<string> {
  const version = newest ?? (await daemon.ask((client) => client.fileHistory({ path, limit: 1 })))?.versions[0];
  const stale = (await holders(daemon, path)).filter(({ state }) => state === "stale");
  const last = version === undefined ? "not tracked" : authorOf(version);
  return stale.length === 0 ? last : `${last}; stale for ${stale.map(({ session }) => session).join(", ")}`;
}

/** The open sessions that hold a file, and what their copies are worth. */
export async function holders(daemon: Daemon, path: string): Promise<{ session: string; state: FileState["state"] }[]> {
  const sessions = (await daemon.ask((client) => client.sessionList()))?.sessions ?? [];
  const all = sessions.filter(({ open }) => open).map(async ({ session }) => {
    const answer = await daemon.ask((client) => client.fileStatus({ session, paths: [path] }));
    return { session, state: answer?.files[0]?.state ?? ("unread" as const) };
  });
  return (await Promise.all(all)).filter(({ state }) => state !== "unread");
}

/**
 * A file's versions, newest first. VS Code's own timeline takes sources from
 * extensions by a proposed interface only, so it is a list to pick from.
 */
export async function history(daemon: Daemon, path: string): Promise<void> {
  const answer = await daemon.ask((client) => client.fileHistory({ path, limit: 200 }));
  const rows = (answer?.versions ?? []).map((version) => ({
    label: `$(${version.author.kind === "agent" ? "robot" : version.author.kind === "user" ? "account" : "question"}) ${authorOf(version)}`,
    description: `${version.kind}, ${new Date(version.time).toLocaleString()}`,
    detail: `${version.evidence}${version.hash == null ? "" : `, ${version.hash.slice(0, 12)}`}, ${version.size} bytes`,
  }));
  if (rows.length === 0) void vscode.window.showInformationMessage(`${path}: no agent has read it, so it is not tracked.`);
  else await vscode.window.showQuickPick(rows, { title: `Versions of ${path}`, matchOnDescription: true });
}
