// The queue of changes that nobody has kept or undone, in the order in which it
// is gone through.

import { type Ref, refOf } from "../names.js";
import type { CommandRow, ReviewFile, ReviewHunk, ReviewHunks } from "../protocol.js";
import type { Authors, Who } from "./authors.js";
import { lineCount } from "./doubts.js";
import { type By, type Change, type Group, groups } from "./groups.js";
import { what } from "./whole.js";

interface Common {
  key: string;
  ref: Ref;
  id: string;
  /** Of the newest part of the change. */
  time: number;
  who: Who[];
  /** Whether the user has marked it as viewed. */
  isViewed: boolean;
}

/** A change of lines. */
export interface Hunk extends Common {
  kind: "hunk";
  hunk: ReviewHunk;
  added: number;
  removed: number;
}

/** A change of a mode, or of a symlink. */
export interface Whole extends Common {
  kind: "whole";
  file: ReviewFile;
  /** What it did, in a few words. */
  what: string;
}

export type Item = Hunk | Whole;

/** `isNamed`: the row has to name the file, since its group does not. */
export type Row =
  | { kind: "group"; key: string; group: Group<Item>; depth: number; isLate: boolean; isOpen: boolean }
  | { kind: "item"; key: string; item: Item; depth: number; isNamed: boolean };

/** The row of the daemon's answer. */
export const rowOf = (item: Item): Change => (item.kind === "hunk" ? item.hunk : item.file);

/**
 * All changes of a queue. Those without lines come last. `marks` has the viewed
 * marks that were set since the daemon answered.
 */
export function itemsOf(found: ReviewHunks | undefined, authors: Authors, marks?: ReadonlyMap<string, boolean>): Item[] {
  const common = (change: ReviewHunk | ReviewFile): Common => {
    const ref = refOf(change);
    return { key: `${ref}\0${change.id}`, ref, id: change.id, time: change.time, who: change.authors.map((author) => authors.of(author)), isViewed: marks?.get(`${ref}\0${change.id}`) ?? change.viewed === true };
  };
  const hunks = (found?.hunks ?? []).map((hunk): Item => ({ kind: "hunk", ...common(hunk), hunk, added: lineCount(hunk.after), removed: lineCount(hunk.before) }));
  const files = (found?.files ?? []).map((file): Item => ({ kind: "whole", ...common(file), file, what: what(file) }));
  return [...hunks, ...files];
}

/** The number of changes in a queue. */
export const waiting = (found: ReviewHunks | undefined): number => (found ? found.hunks.length + (found.files?.length ?? 0) : 0);

/** The path and the lines of a change in lower case, made once. */
const searched = new WeakMap<Change, string>();

function searchedOf(item: Item): string {
  const row = rowOf(item);
  let text = searched.get(row);
  if (text === undefined) {
    const lines = item.kind === "hunk" ? [item.hunk.before, item.hunk.after] : [item.file.targetBefore ?? "", item.file.target ?? ""];
    text = [row.path, ...lines].join("\n").toLowerCase();
    searched.set(row, text);
  }
  return text;
}

/** The changes that have all words of `text` in their path, their lines, their authors or their command. */
export function filtered(items: readonly Item[], text: string, commands: ReadonlyMap<string, CommandRow | undefined>): readonly Item[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return items;
  return items.filter((item) => {
    const { command } = rowOf(item);
    const all = [...item.who.map(({ name }) => name), command ?? "", commands.get(command ?? "")?.label ?? ""].join("\n").toLowerCase();
    const own = searchedOf(item);
    return words.every((word) => own.includes(word) || all.includes(word));
  });
}

/**
 * Lists changes in their groups; those in `later` come last. A command that
 * changed many files is folded, other groups are not; `turned` has the keys of
 * the rows of which the user wants the opposite.
 */
export function listed(items: readonly Item[], by: By, later: ReadonlySet<string>, turned: ReadonlySet<string>): Row[] {
  const rows: Row[] = [];
  for (const isLate of [false, true]) {
    const add = (group: Group<Item>, depth: number) => {
      const key = `${isLate ? "later" : ""}\0${group.key}`;
      const isOpen = group.isMany === turned.has(key);
      rows.push({ kind: "group", key, group, depth, isLate, isOpen });
      if (!isOpen) return;
      for (const inner of group.inner) add(inner, depth + 1);
      for (const item of group.own) rows.push({ kind: "item", key: item.key, item, depth, isNamed: group.by !== "file" });
    };
    for (const group of groups(items.filter((item) => later.has(item.key) === isLate), rowOf, by)) add(group, 0);
  }
  return rows;
}

/** Whether the keys j and k stop at a row: at changes, and at groups that are folded. */
export const isStop = (row: Row): boolean => row.kind === "item" || !row.isOpen;

/** The row to look at after some have left the list: the one that followed the current one. */
export function following(before: readonly Row[], after: readonly Row[], current: string | undefined): string | undefined {
  if (after.some(({ key }) => key === current)) return current;
  const stops = after.filter(isStop).map(({ key }) => key);
  const left = new Set(stops);
  const at = before.findIndex(({ key }) => key === current);
  const near = at < 0 ? [] : [...before.slice(at + 1), ...before.slice(0, at).reverse()];
  return near.find(({ key }) => left.has(key))?.key ?? stops[0];
}
