// The queue of changes that nobody has kept or undone, in the order in which it
// is gone through.

import { type Ref, refOf } from "../names.js";
import type { ReviewFile, ReviewHunk, ReviewHunks } from "../protocol.js";
import type { Authors, Who } from "./authors.js";
import { what } from "./whole.js";

export type By = "file" | "session";

interface Common {
  key: string;
  ref: Ref;
  id: string;
  /** Of the newest part of the change. */
  time: number;
  who: Who[];
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

export type Row =
  | { kind: "group"; key: string; title: string; who?: Who; ref?: Ref; count: number }
  | { kind: "item"; key: string; item: Item };

export interface Queue {
  /** Group headings and changes, as they are listed. */
  rows: Row[];
  /** The changes alone, in the same order. */
  items: Item[];
}

/** All changes of a queue. Those without lines come last in their file. */
function itemsOf(found: ReviewHunks | undefined, authors: Authors): Item[] {
  const common = (change: ReviewHunk | ReviewFile): Common => {
    const ref = refOf(change);
    return { key: `${ref}\0${change.id}`, ref, id: change.id, time: change.time, who: change.authors.map((author) => authors.of(author)) };
  };
  const hunks = (found?.hunks ?? []).map((hunk): Item => ({ kind: "hunk", ...common(hunk), hunk, added: lineCount(hunk.after), removed: lineCount(hunk.before) }));
  const files = (found?.files ?? []).map((file): Item => ({ kind: "whole", ...common(file), file, what: what(file) }));
  return [...hunks, ...files];
}

/** The number of changes in a queue. */
export const waiting = (found: ReviewHunks | undefined): number => (found ? found.hunks.length + (found.files?.length ?? 0) : 0);

/** Counts the lines of a text; a last line without its line feed counts. */
export function lineCount(text: string): number {
  let lines = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return text.length > 0 && !text.endsWith("\n") ? lines + 1 : lines;
}

/** Orders changes by file or by session; those in `later` come last. */
export function queue(found: ReviewHunks | undefined, by: By, later: ReadonlySet<string>, authors: Authors): Queue {
  const groups = new Map<string, { title: string; who?: Who; ref?: Ref; late: boolean; items: Item[] }>();
  for (const item of itemsOf(found, authors)) {
    const { ref, who } = item;
    const late = later.has(item.key);
    const name = by === "file" ? ref : who.map((one) => one.key).join("\0");
    const key = `${late ? "1" : "0"}${name}`;
    let group = groups.get(key);
    if (!group) {
      const title = by === "file" ? (item.kind === "hunk" ? item.hunk : item.file).path : who.map((one) => one.name).join(", ") || "unknown";
      group = { title, late, items: [], ...(by === "file" ? { ref } : {}), ...(by === "session" && who[0] ? { who: who[0] } : {}) };
      groups.set(key, group);
    }
    group.items.push(item);
  }
  const rows: Row[] = [];
  const items: Item[] = [];
  const ordered = [...groups].sort(([, one], [, other]) => Number(one.late) - Number(other.late));
  for (const [key, group] of ordered) {
    const { title, who, ref } = group;
    rows.push({
      kind: "group", key, title: group.late ? `${title} (later)` : title, count: group.items.length,
      ...(who ? { who } : {}), ...(ref ? { ref } : {}),
    });
    for (const item of group.items) {
      rows.push({ kind: "item", key: item.key, item });
      items.push(item);
    }
  }
  return { rows, items };
}

/** The change to look at after `gone` have left the queue: the one that followed the current one. */
export function following(before: readonly Item[], after: readonly Item[], current: string | undefined): string | undefined {
  const left = new Set(after.map((item) => item.key));
  if (current !== undefined && left.has(current)) return current;
  const at = before.findIndex((item) => item.key === current);
  if (at < 0) return after[0]?.key;
  for (let i = at + 1; i < before.length; i++) if (left.has(before[i]!.key)) return before[i]!.key;
  for (let i = at - 1; i >= 0; i--) if (left.has(before[i]!.key)) return before[i]!.key;
  return after[0]?.key;
}
