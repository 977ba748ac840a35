// The daemon's line diff, as positions in two texts: the page shows the very
// changes that the daemon tells of, and computes no diff of a long file.

import type { DiffHunk } from "../protocol.js";

export interface Span {
  fromA: number;
  toA: number;
  fromB: number;
  toB: number;
}

/** Returns where each line begins, and the length of the text as the last entry. */
export function lineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  starts.push(text.length + 1);
  return starts;
}

/** A number of the line before which a hunk begins, where it has no line on that side. */
const first = (start: number, lines: number) => (lines === 0 ? start + 1 : start);

/**
 * Returns the changed spans of texts `a` and `b` by the hunks of `file/diff`.
 * Undefined if a hunk does not fit the texts, since they are of another moment.
 */
export function spans(hunks: readonly DiffHunk[], a: string, b: string): Span[] | undefined {
  const [startsA, startsB] = [lineStarts(a), lineStarts(b)];
  const at = (starts: number[], line: number, text: string) => Math.min(starts[line - 1] ?? NaN, text.length);
  const found: Span[] = [];
  for (const hunk of hunks) {
    let lineA = first(hunk.oldStart, hunk.oldLines);
    let lineB = first(hunk.newStart, hunk.newLines);
    let open: Span | undefined;
    const close = () => {
      if (!open) return;
      open.toA = at(startsA, lineA, a);
      open.toB = at(startsB, lineB, b);
      found.push(open);
      open = undefined;
    };
    for (const line of hunk.lines) {
      if (line.kind === "context") {
        close();
        lineA++;
        lineB++;
        continue;
      }
      open ??= { fromA: at(startsA, lineA, a), toA: 0, fromB: at(startsB, lineB, b), toB: 0 };
      if (line.kind === "removed") lineA++;
      else lineB++;
    }
    close();
  }
  const fit = found.every((span) => [span.fromA, span.toA, span.fromB, span.toB].every((value) => !Number.isNaN(value)) && span.fromA <= span.toA && span.fromB <= span.toB);
  return fit ? found : undefined;
}
