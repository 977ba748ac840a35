// Changes that have no lines: of a mode, and of a symlink (REV-3).

import type { FileMode, ReviewFile } from "../../../bindings/typescript/src/generated/protocol";

type Sides = Pick<ReviewFile, "mode" | "modeBefore" | "target" | "targetBefore">;

function isLink(mode: FileMode | null | undefined): boolean {
  return mode?.startsWith("12") === true;
}

/** The permissions as `chmod` takes them: three digits, or four with special bits. */
function permissions(mode: FileMode): string {
  return mode.slice(-4).replace(/^0/, "");
}

/** A target comes from the disk: control and formatting characters are not shown as such. */
function shown(target: string | null | undefined): string {
  return (target ?? "").replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "?");
}

/** Whether the change has a symlink on one of its sides. */
export function hasLink({ mode, modeBefore }: Sides): boolean {
  return isLink(mode) || isLink(modeBefore);
}

/** Whether the change is one of the mode, so that an undo leaves the content as it is. */
export function isMode(change: Sides): boolean {
  const { mode, modeBefore } = change;
  return mode != null && modeBefore != null && mode !== modeBefore && !hasLink(change);
}

/** Whether the path now has a file that is no symlink, so that it can be opened as itself. */
export function isFile({ mode }: Sides): boolean {
  return mode != null && !isLink(mode);
}

/** What a change did: `mode 644 → 755`, `symlink a → b`. */
export function whatWhole({ mode, modeBefore, target, targetBefore }: Sides): string {
  const one = (of: FileMode, to: string | null | undefined) => (isLink(of) ? `symlink → ${shown(to)}` : "file");
  if (modeBefore == null) return mode == null ? "content changed" : isLink(mode) ? one(mode, target) : "new file";
  if (mode == null) return `removed ${one(modeBefore, targetBefore)}`;
  if (isLink(mode) && isLink(modeBefore)) return `symlink ${shown(targetBefore)} → ${shown(target)}`;
  if (isLink(mode) !== isLink(modeBefore)) return `${one(modeBefore, targetBefore)} replaced by ${one(mode, target)}`;
  return mode === modeBefore ? "content changed" : `mode ${permissions(modeBefore)} → ${permissions(mode)}`;
}
