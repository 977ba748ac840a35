// Changes that have no lines: of a mode, and of a symlink (REV-3). The extension
// for VS Code names them in the same words.

import { shown } from "../names.js";
import type { FileMode, ReviewFile } from "../protocol.js";

type Sides = Pick<ReviewFile, "mode" | "modeBefore" | "target" | "targetBefore">;

/** One row of the comparison: what a file is without the change, and with it. */
export interface Row {
  name: string;
  before: string;
  after: string;
}

export const isLink = (mode: FileMode) => mode.startsWith("12");

/** Returns the permissions as `chmod` takes them: three digits, or four with special bits. */
const permissions = (mode: FileMode): string => mode.slice(-4).replace(/^0/, "");

/** Returns the permissions as `ls` lists them: `rwxr-xr-x`. */
function letters(mode: FileMode): string {
  const bits = parseInt(mode.slice(-4), 8);
  const special = [[0o4000, "s"], [0o2000, "s"], [0o1000, "t"]] as const;
  return special
    .map(([bit, letter], at) => {
      const own = bits >> (6 - 3 * at);
      const runs = (own & 1) !== 0;
      const last = bits & bit ? (runs ? letter : letter.toUpperCase()) : runs ? "x" : "-";
      return (own & 4 ? "r" : "-") + (own & 2 ? "w" : "-") + last;
    })
    .join("");
}

/** Of a file that was a symlink once: it is listed as a whole (REV-3). */
const CONTENT = "content changed";

/** Returns what a change did, in a few words: `mode 644 → 755`, `symlink a → b`. */
export function what({ mode, modeBefore, target, targetBefore }: Sides): string {
  const one = (of: FileMode, to: string | null | undefined) => (isLink(of) ? `symlink → ${shown(to ?? "")}` : "file");
  if (modeBefore == null) return mode == null ? CONTENT : isLink(mode) ? one(mode, target) : "new file";
  if (mode == null) return `removed ${one(modeBefore, targetBefore)}`;
  if (isLink(mode) && isLink(modeBefore)) return `symlink ${shown(targetBefore ?? "")} → ${shown(target ?? "")}`;
  if (isLink(mode) !== isLink(modeBefore)) return `${one(modeBefore, targetBefore)} replaced by ${one(mode, target)}`;
  return mode === modeBefore ? CONTENT : `mode ${permissions(modeBefore)} → ${permissions(mode)}`;
}

/** Returns what the two sides differ in; nothing if that is the content alone. */
export function sides({ mode, modeBefore, target, targetBefore }: Sides): Row[] {
  const kind = (of: FileMode | null | undefined) => (of == null ? "does not exist" : isLink(of) ? "symlink" : "file");
  // The permissions of a symlink mean nothing.
  const bits = (of: FileMode | null | undefined) => (of == null || isLink(of) ? "" : `${permissions(of)} ${letters(of)}`);
  const rows = [
    { name: "Kind", before: kind(modeBefore), after: kind(mode) },
    { name: "Mode", before: bits(modeBefore), after: bits(mode) },
    { name: "Target", before: shown(targetBefore ?? ""), after: shown(target ?? "") },
  ];
  return rows.filter(({ before, after }) => before !== after);
}
