// Changes that have no lines: of a mode, and of a symlink (REV-3).

import type { FileMode, ReviewFile } from "../../../bindings/typescript/src/generated/protocol";
import { isLink as isLinkMode, what } from "../../../ui/src/model/whole";

type Sides = Pick<ReviewFile, "mode" | "modeBefore" | "target" | "targetBefore">;

export { what as whatWhole };

function isLink(mode: FileMode | null | undefined): boolean {
  return mode != null && isLinkMode(mode);
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
