// The queue of agents' changes that the user has not reviewed (REV-1), of all
// folders of the window, and the requests that keep and undo them.

import * as vscode from "vscode";

import type { ReviewFile, ReviewHunk, Undone } from "../../../bindings/typescript/src/generated/protocol";
import { TouchmarkError } from "../../../bindings/typescript/src/errors";
import type { Daemon } from "./daemon";
import { authorOf, lines } from "./words";
import { isMode } from "./whole";

/** Events arrive in bursts: the queue is requested this long after the first, in milliseconds. */
const BURST = 250;

/** How long one of these requests may take, in milliseconds: an undo writes files. */
const WITHIN = { withinMs: 30_000 };

/** A change of lines. */
export interface LineChange {
  daemon: Daemon;
  hunk: ReviewHunk;
}

/** A change of a file that has no lines: of its mode, or of a symlink. */
export interface FileChange {
  daemon: Daemon;
  file: ReviewFile;
}

/** One change in the queue. */
export type Change = LineChange | FileChange;

export class Queue implements vscode.Disposable {
  readonly #daemons: () => Daemon[];
  /** The changes of each daemon, sorted by file and line; then those without lines. */
  #changes: Change[] = [];
  /** The changes of lines, by the address of their file: looked up at every keystroke. */
  #byFile = new Map<string, LineChange[]>();
  /** True if a daemon has more changes than it has listed. */
  hasMore = false;
  /** The changes that were put off until the next *Look Again*, by key. */
  readonly #later = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #requests = 0;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly changed = this.#changed.event;

  constructor(daemons: () => Daemon[]) {
    this.#daemons = daemons;
  }

  all(): readonly Change[] {
    return this.#changes;
  }

  /** The changes of one file's lines that were not put off. */
  of(uri: vscode.Uri): LineChange[] {
    return (this.#byFile.get(uri.toString()) ?? []).filter((change) => !this.isLater(change));
  }

  isLater(change: Change): boolean {
    return this.#later.has(key(change));
  }

  /** Requests the queue soon. */
  refresh(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.look();
    }, BURST);
  }

  /** Requests the queue. A later request's answer wins over an earlier one's. */
  async look(): Promise<void> {
    const mine = ++this.#requests;
    const answers = await Promise.all(
      this.#daemons().map(async (daemon) => ({ daemon, queue: await daemon.ask((client) => client.reviewList({}, WITHIN)) })),
    );
    if (mine !== this.#requests) return;
    this.#changes = answers.flatMap(({ daemon, queue }): Change[] => [
      ...(queue?.hunks ?? []).map((hunk) => ({ daemon, hunk })),
      ...(queue?.files ?? []).map((file) => ({ daemon, file })),
    ]);
    this.#byFile = new Map();
    for (const change of this.#changes.filter(isOfLines)) {
      const file = uriOf(change).toString();
      const own = this.#byFile.get(file);
      if (own) own.push(change);
      else this.#byFile.set(file, [change]);
    }
    this.hasMore = answers.some(({ queue }) => queue?.more === true);
    this.#changed.fire();
  }

  /** Puts changes off: they stay in the queue. */
  later(changes: readonly Change[]): void {
    changes.forEach((change) => this.#later.add(key(change)));
    this.#changed.fire();
  }

  /** Shows the changes that were put off again. */
  nothingIsLater(): void {
    this.#later.clear();
  }

  async keep(changes: readonly Change[]): Promise<void> {
    await this.#each(changes, "kept", async (daemon, hunks) => {
      await daemon.client?.reviewKeep({ hunks }, WITHIN);
    });
  }

  async undo(changes: readonly Change[]): Promise<void> {
    if (!(await areSaved(changes))) return;
    await this.#each(changes, "undone", async (daemon, hunks) => {
      const undone = await daemon.client?.reviewUndo({ hunks }, WITHIN);
      if (undone) report(undone);
    });
  }

  /** Sends one request to each daemon that has some of the changes. */
  async #each(changes: readonly Change[], done: string, send: (daemon: Daemon, hunks: { path: string; id: string }[]) => Promise<void>): Promise<void> {
    for (const daemon of new Set(changes.map((change) => change.daemon))) {
      const own = changes.filter((change) => change.daemon === daemon);
      const files = [...new Set(own.map((change) => rowOf(change).path))].join(", ");
      try {
        await send(daemon, own.map(rowOf).map(({ path, id }) => ({ path, id })));
      } catch (error) {
        const isOther = error instanceof TouchmarkError && error.code === "notFound";
        void vscode.window.showWarningMessage(
          isOther ? `Conflict in ${files}: the change is no longer as it was listed. Nothing was ${done}; the list is up to date again.` : `${files}: nothing was ${done}. ${message(error)}`,
        );
      }
    }
    await this.look();
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.#changed.dispose();
  }
}

/** The place of the file that has a change. */
export function uriOf(change: Change): vscode.Uri {
  return change.daemon.uriOf(rowOf(change).path);
}

export function isOfLines(change: Change): change is LineChange {
  return "hunk" in change;
}

/** The row of the daemon's answer. */
export function rowOf(change: Change): ReviewHunk | ReviewFile {
  return isOfLines(change) ? change.hunk : change.file;
}

function key(change: Change): string {
  const { path, id } = rowOf(change);
  return `${change.daemon.folder.uri.toString()}\n${path}\n${id}`;
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Saves the files in which changes are to be undone, if the user wants that.
 * An undo writes to the disk, so it would conflict with unsaved changes. The
 * undo of a mode alone leaves the content as it is.
 */
async function areSaved(changes: readonly Change[]): Promise<boolean> {
  const written = changes.filter((change) => isOfLines(change) || !isMode(change.file));
  const uris = new Set(written.map((change) => uriOf(change).toString()));
  const dirty = vscode.workspace.textDocuments.filter(({ uri, isDirty }) => isDirty && uris.has(uri.toString()));
  if (dirty.length === 0) return true;
  const save = "Save and Undo";
  const names = dirty.map(({ uri }) => vscode.workspace.asRelativePath(uri)).join(", ");
  const answer = await vscode.window.showWarningMessage(`You have unsaved changes in ${names}. An undo changes the file on disk.`, save);
  if (answer !== save) return false;
  const saved = await Promise.all(dirty.map((document) => document.save()));
  return saved.every((one) => one);
}

/** Undoes what a session has done, after a question that says what that is. */
export async function undoSession(daemon: Daemon, session: string, label: string): Promise<void> {
  try {
    const planned = await daemon.client?.undo({ session, dryRun: true, now: true }, WITHIN);
    if (planned === undefined) return;
    const count = planned.files.reduce((sum, { hunks }) => sum + hunks, 0);
    const likely = planned.files.flatMap(({ left }) => left ?? []).filter(({ cause }) => cause === "likely").length;
    if (count + likely === 0) {
      void vscode.window.showInformationMessage(`${label} has no change that can be undone.`);
      return report(planned);
    }
    const undo = "Undo";
    const all = `Also ${likely} that may be mine`;
    const files = planned.files.filter(({ hunks, left }) => hunks > 0 || left?.length).map(({ path }) => path);
    const detail = `${files.slice(0, 10).join("\n")}${files.length > 10 ? `\nand ${files.length - 10} more` : ""}`;
    const yours = likely > 0 ? ` ${likely} more appeared while a command ran, and may be yours.` : "";
    const question = `Undo ${count} changes by ${label}? Lines that others have written stay.${yours}`;
    const answer = await vscode.window.showWarningMessage(question, { modal: true, detail }, undo, ...(likely > 0 ? [all] : []));
    if (answer === undefined) return;
    const undone = await daemon.client?.undo({ session, now: true, likely: answer === all }, WITHIN);
    if (undone) report(undone);
  } catch (error) {
    void vscode.window.showWarningMessage(`touchmark: ${message(error)}`);
  }
}

/** Reverts the newest undo. */
export async function redo(daemon: Daemon): Promise<void> {
  try {
    const redone = await daemon.client?.redo({}, WITHIN);
    if (redone) report(redone);
  } catch (error) {
    void vscode.window.showWarningMessage(`touchmark: ${message(error)}`);
  }
}

/** Says what an undo has left as it is. What it has done can be seen. */
function report({ files }: Undone): void {
  const left = files.flatMap(({ path, outcome, cause, conflicts, left: stays }) => {
    if (stays?.length) return stays.map((one) => `${path}: ${one.why}`);
    if (conflicts?.length) return conflicts.map((one) => `${path}, ${lines(one.lines)}: changed since by ${authorOf({ author: one.by })}`);
    return ["conflict", "notKept", "changed", "failed"].includes(outcome) ? [`${path}: ${cause ?? outcome}`] : [];
  });
  if (left.length === 0) return;
  const more = left.length > 3 ? `; and ${left.length - 3} more` : "";
  void vscode.window.showWarningMessage(`Conflict in ${left.slice(0, 3).join("; ")}${more}. ${left.length === 1 ? "It stays as it is." : "They stay as they are."}`);
}
