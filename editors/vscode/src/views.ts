// What is shown: the status bar item, the tree of sessions, a file's history.

import * as vscode from "vscode";

import type { FileState, Version, Versions } from "../../../bindings/typescript/src/generated/protocol";
import type { Daemon } from "./daemon";
import { authorOf, nameOf } from "./words";

const ICONS: Record<FileState["state"], string> = {
  fresh: "check",
  stale: "warning",
  deleted: "trash",
  unread: "circle-outline",
  unreadable: "error",
  unknown: "question",
};

const ICONS_OF_AUTHORS: Record<Version["author"]["kind"], string> = { agent: "robot", user: "account", unknown: "question", committed: "git-commit" };

export type Row =
  | { kind: "session"; daemon: Daemon; id: string; session: string; stale: number }
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
    const answer = await row.daemon.ask((client) => client.fileStatus({ session: row.id }));
    const rank = (file: FileState) => (file.state === "stale" ? 0 : 1);
    const files = [...(answer?.files ?? [])].sort((one, other) => rank(one) - rank(other) || one.path.localeCompare(other.path));
    return files.map((file) => ({ kind: "file", daemon: row.daemon, file }));
  }

  async #sessions(daemon: Daemon): Promise<Row[]> {
    const answer = await daemon.ask((client) => client.sessionList());
    return (answer?.sessions ?? []).filter(({ open }) => open).map((row) => ({ kind: "session", daemon, id: row.session, session: nameOf(row) ?? row.session, stale: row.stale }));
  }

  getTreeItem(row: Row): vscode.TreeItem {
    if (row.kind === "session") {
      const item = new vscode.TreeItem(row.session, vscode.TreeItemCollapsibleState.Expanded);
      item.iconPath = new vscode.ThemeIcon("robot");
      item.contextValue = "session";
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
export async function describe(daemon: Daemon, path: string): Promise<string> {
  const known = await daemon.ask((client) => client.fileHistory({ path, limit: 1 }));
  const stale = (await holders(daemon, path)).filter(({ state }) => state === "stale");
  const version = known?.versions[0];
  const last = version === undefined ? "not tracked" : version === baselineOf(known) ? "no change seen" : authorOf(version);
  return stale.length === 0 ? last : `${last}; stale for ${stale.map(({ session }) => session).join(", ")}`;
}

/** What was there first: nobody's change. It is the oldest version, where an answer reaches back so far. */
function baselineOf(known: Versions | undefined): Version | undefined {
  const oldest = known?.more == null ? known?.versions.at(-1) : undefined;
  return oldest?.author.kind === "unknown" && oldest.evidence === "gap" ? oldest : undefined;
}

/** The open sessions that hold a file, and what their copies are worth. */
export async function holders(daemon: Daemon, path: string): Promise<{ session: string; state: FileState["state"] }[]> {
  const sessions = (await daemon.ask((client) => client.sessionList()))?.sessions ?? [];
  const all = sessions.filter(({ open }) => open).map(async (row) => {
    const session = nameOf(row) ?? row.session;
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
  const first = baselineOf(answer);
  // A correction says all that the row it corrects did.
  const corrected = new Set(answer?.versions.map(({ amends }) => amends));
  const rows = (answer?.versions ?? []).filter(({ clock }) => !corrected.has(clock)).map((version) => ({
    label: version === first ? "$(circle-outline) as first seen" : `$(${ICONS_OF_AUTHORS[version.author.kind]}) ${authorOf(version)}`,
    description: version === first ? new Date(version.time).toLocaleString() : `${version.kind}, ${new Date(version.time).toLocaleString()}`,
    detail: [version === first ? undefined : version.evidence, version.hash?.slice(0, 12), `${version.size} bytes`].filter((part) => part != null).join(", "),
  }));
  if (rows.length === 0) void vscode.window.showInformationMessage(`${path}: no agent has read it, so it is not tracked.`);
  else await vscode.window.showQuickPick(rows, { title: `Versions of ${path}`, matchOnDescription: true });
}
