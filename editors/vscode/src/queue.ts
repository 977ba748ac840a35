// The queue of agents' changes that the user has not reviewed (REV-1), of all
// folders of the window, and the requests that keep and undo them.

import * as vscode from "vscode";

import type { CommandRow, ReviewFile, ReviewHunk, Undone } from "../../../bindings/typescript/src/generated/protocol";
import { TouchmarkError } from "../../../bindings/typescript/src/errors";
import { type Doubt, claims, commandShown, doubtsIn, doubtsOf, mayBeYours } from "../../../ui/src/model/doubts";
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
  /** The commands of each daemon that made changes in the queue, by name. */
  readonly #commands = new WeakMap<Daemon, Map<string, CommandRow>>();
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

  /** A command that made changes in the queue; undefined if it is no longer known. */
  command(daemon: Daemon, name: string): CommandRow | undefined {
    return this.#commands.get(daemon)?.get(name);
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
      this.#daemons().map(async (daemon) => {
        const queue = await daemon.ask((client) => client.reviewList({}, WITHIN));
        const hasCommands = [...(queue?.hunks ?? []), ...(queue?.files ?? [])].some(({ command }) => command != null);
        const ran = hasCommands ? await daemon.ask((client) => client.commandList({ limit: 1000 })) : undefined;
        this.#commands.set(daemon, new Map(ran?.commands.map((row) => [row.command, row])));
        return { daemon, queue };
      }),
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
    const meant = await this.#meant(changes);
    await this.#each(meant, "undone", async (daemon, hunks) => {
      const undone = await daemon.client?.reviewUndo({ hunks }, WITHIN);
      if (undone) report(undone);
    });
  }

  /** Asks about changes that may be the user's (UNDO-7). Returns those that are to be undone. */
  async #meant(changes: readonly Change[]): Promise<Change[]> {
    const meant = changes.filter((change) => !mayBeYours(rowOf(change)));
    for (const daemon of new Set(changes.map((change) => change.daemon))) {
      const own = changes.filter((change) => change.daemon === daemon);
      const all = this.#changes.filter((change) => change.daemon === daemon);
      for (const doubt of doubtsOf(own.map(rowOf), all.map(rowOf))) {
        const isCommands = (await whose(daemon, doubt, this.command(daemon, doubt.command ?? ""))) === "session";
        if (isCommands) meant.push(...own.filter((change) => mayBeYours(rowOf(change)) && (rowOf(change).command ?? undefined) === doubt.command));
      }
    }
    return meant;
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

/**
 * Asks whose the text is that appeared while a command ran, and records the
 * answer (ATTR-18). Returns undefined if there was none.
 */
async function whose(daemon: Daemon, doubt: Doubt, row: CommandRow | undefined): Promise<"session" | "user" | undefined> {
  const [command, mine] = ["The Command's", "Mine"];
  const files = doubt.places.map(({ path, added, removed }) => `${path} +${added}${removed > 0 ? ` -${removed}` : ""}`);
  const text = doubt.places.flatMap((place) => place.text.split("\n").slice(0, 3));
  const question = `${doubt.command === undefined ? "A command" : commandShown(doubt.command, row)}: ${short(files, 3, ", ")}. The command's, or yours?`;
  const detail = `This appeared while the command ran. Without an answer it stays.\n\n${short(text, 12, "\n")}`;
  const answer = await vscode.window.showWarningMessage(question, { modal: true, detail }, ...(doubt.session === undefined ? [] : [command]), mine);
  const by = answer === command ? "session" : answer === mine ? "user" : undefined;
  if (by === undefined) return undefined;
  try {
    for (const claim of claims(doubt, by)) await daemon.client?.claim(claim, WITHIN);
  } catch (error) {
    void vscode.window.showWarningMessage(`touchmark: ${message(error)}`);
    return undefined;
  }
  return by;
}

/** The first few, and how many more there are. */
export function short(all: readonly string[], most: number, between: string): string {
  return all.slice(0, most).join(between) + (all.length > most ? `${between}and ${all.length - most} more` : "");
}

/** Undoes what a session has done, after a question that says what that is. */
export async function undoSession(daemon: Daemon, session: string, label: string): Promise<void> {
  try {
    const plan = () => daemon.client?.undo({ session, dryRun: true, now: true }, WITHIN);
    let planned = await plan();
    if (planned === undefined) return;
    for (const doubt of doubtsIn(planned)) {
      await whose(daemon, doubt, planned.commands?.find(({ command }) => command === doubt.command));
    }
    planned = (await plan()) ?? planned;
    const count = planned.files.reduce((sum, { hunks }) => sum + hunks, 0);
    if (count === 0) {
      void vscode.window.showInformationMessage(`${label} has no change that can be undone.`);
      return report(planned);
    }
    const undo = "Undo";
    const files = planned.files.filter(({ hunks }) => hunks > 0).map(({ path }) => path);
    const question = `Undo ${count} changes by ${label}? Lines that others have written stay.`;
    if ((await vscode.window.showWarningMessage(question, { modal: true, detail: short(files, 10, "\n") }, undo)) !== undo) return;
    const undone = await daemon.client?.undo({ session, now: true }, WITHIN);
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
