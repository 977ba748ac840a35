// The queue of changes that nobody has kept or undone, in the order in which it
// is gone through.

import { type Ref, refOf } from "../names.js";
import type { ReviewHunk } from "../protocol.js";
import type { Authors, Who } from "./authors.js";

export type By = "file" | "session";

export interface Item {
  key: string;
  ref: Ref;
  hunk: ReviewHunk;
  who: Who[];
  added: number;
  removed: number;
}

export type Row =
  | { kind: "group"; key: string; title: string; who?: Who; ref?: Ref; count: number }
  | { kind: "hunk"; key: string; item: Item };

export interface Queue {
  /** Group headings and hunks, as they are listed. */
  rows: Row[];
  /** The hunks alone, in the same order. */
  items: Item[];
}

export const keyOf = (hunk: ReviewHunk): string => `${refOf(hunk)}\0${hunk.id}`;

/** Counts the lines of a text; a last line without its line feed counts. */
export function lineCount(text: string): number {
  let lines = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return text.length > 0 && !text.endsWith("\n") ? lines + 1 : lines;
}

/** Orders hunks by file or by session; those in `later` come last. */
export function queue(hunks: readonly ReviewHunk[], by: By, later: ReadonlySet<string>, authors: Authors): Queue {
  const groups = new Map<string, { title: string; who?: Who; ref?: Ref; late: boolean; items: Item[] }>();
  for (const hunk of hunks) {
    const who = hunk.authors.map((author) => authors.of(author));
    const ref = refOf(hunk);
    const item: Item = { key: keyOf(hunk), ref, hunk, who, added: lineCount(hunk.after), removed: lineCount(hunk.before) };
    const late = later.has(item.key);
    const name = by === "file" ? ref : who.map((one) => one.key).join("\0");
    const key = `${late ? "1" : "0"}${name}`;
    let group = groups.get(key);
    if (!group) {
      const title = by === "file" ? hunk.path : who.map((one) => one.name).join(", ") || "unknown";
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
      rows.push({ kind: "hunk", key: item.key, item });
      items.push(item);
    }
  }
  return { rows, items };
}

/** The hunk to look at after `gone` have left the queue: the one that followed the current one. */
export function following(before: readonly Item[], after: readonly Item[], current: string | undefined): string | undefined {
  const left = new Set(after.map((item) => item.key));
  if (current !== undefined && left.has(current)) return current;
  const at = before.findIndex((item) => item.key === current);
  if (at < 0) return after[0]?.key;
  for (let i = at + 1; i < before.length; i++) if (left.has(before[i]!.key)) return before[i]!.key;
  for (let i = at - 1; i >= 0; i--) if (left.has(before[i]!.key)) return before[i]!.key;
  return after[0]?.key;
}
