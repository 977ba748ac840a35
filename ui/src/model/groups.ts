// Agents' changes in groups: by file, directory, command or session. The
// extension for VS Code has the same groups, from here.

import type { Author, ReviewFile, ReviewHunk } from "../protocol.js";

export type Change = ReviewHunk | ReviewFile;

export type By = "file" | "directory" | "command" | "session";

/** The number of files from which on the changes of one command are one entry (REV-1). */
export const MANY = 8;

export interface Group<T> {
  /** The same for the same group when the queue is listed again. */
  key: string;
  /** `edits` are the changes that no single command made. */
  by: By | "edits";
  /** A path, a directory with its last `/`, a command (`c5`), or the names of sessions. */
  name: string;
  /** All changes in it, also those in `inner`. */
  all: T[];
  /** The commands that changed many files in this group. */
  inner: Group<T>[];
  /** The changes that are in no inner group. */
  own: T[];
  /** The number of files. */
  files: number;
  /** Whether it is a command that changed many files: one entry, which can be unfolded. */
  isMany: boolean;
}

/** Returns the name of an author as people read it. */
const nameOf = ({ kind, label, session }: Author) => (kind === "agent" ? (label ?? session ?? "an agent") : kind === "user" ? "you" : "unknown");

/** Returns the names of the authors of a change, each once. */
export const namesOf = ({ authors }: Change): string[] => [...new Set(authors.map(nameOf))];

export const directoryOf = (path: string): string => path.slice(0, path.lastIndexOf("/") + 1) || "./";

/** Groups changes, in the order of the first change of each. `of` gives the row of the daemon's answer. */
export function groups<T>(all: readonly T[], of: (one: T) => Change, by: By): Group<T>[] {
  const found = gathered("", all, of, (change) => {
    if (by === "directory") return [by, directoryOf(change.path)];
    if (by === "session") return [by, namesOf(change).join(", ")];
    if (by === "command") return change.command ? [by, change.command] : ["edits", ""];
    return [by, change.path];
  });
  if (by === "command") return found;
  if (by === "file") {
    // The files of such a command are one entry in the place of the first.
    const many = manyOf(all, of);
    return gathered("", all, of, (change) => (change.command && many.has(change.command) ? ["command", change.command] : [by, change.path]));
  }
  for (const group of found) {
    const many = manyOf(group.all, of);
    const isInner = (one: T) => many.has(of(one).command ?? "");
    group.inner = gathered(group.key, group.all.filter(isInner), of, ({ command }) => ["command", command ?? ""]);
    group.own = group.all.filter((one) => !isInner(one));
  }
  return found;
}

function gathered<T>(within: string, all: readonly T[], of: (one: T) => Change, place: (change: Change) => [by: Group<T>["by"], name: string]): Group<T>[] {
  const found = new Map<string, Group<T>>();
  for (const one of all) {
    const [by, name] = place(of(one));
    const key = `${within}${by}\0${name}\0`;
    let group = found.get(key);
    if (!group) found.set(key, (group = { key, by, name, all: [], inner: [], own: [], files: 0, isMany: false }));
    group.all.push(one);
  }
  for (const group of found.values()) {
    group.own = group.all;
    group.files = filesOf(group.all.map(of)).length;
    group.isMany = group.by === "command" && group.files >= MANY;
  }
  return [...found.values()];
}

/** Returns the commands that changed many of the files. */
function manyOf<T>(all: readonly T[], of: (one: T) => Change): Set<string> {
  const files = new Map<string, Set<string>>();
  for (const { command, path } of all.map(of)) if (command) files.set(command, (files.get(command) ?? new Set()).add(path));
  return new Set([...files].filter(([, paths]) => paths.size >= MANY).map(([command]) => command));
}

/** Returns the paths of changes, each once. */
export const filesOf = (all: readonly Change[]): string[] => [...new Set(all.map(({ path }) => path))];
