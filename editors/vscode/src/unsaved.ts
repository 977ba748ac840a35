// Which lines of the saved file a document's unsaved changes touch: what lies
// between the lines that are still the same at its beginning and at its end.

/** Lines, counted from 0. */
interface Change {
  range: { start: { line: number }; end: { line: number } };
  text: string;
}

export interface Edit {
  /** Lines that are the same at the beginning. */
  above: number;
  /** Lines that are the same at the end. */
  below: number;
  /** Lines of the saved file. */
  saved: number;
  /** Lines of the document. */
  now: number;
}

/** A document without unsaved changes. */
export function unchanged(lines: number): Edit {
  return { above: lines, below: lines, saved: lines, now: lines };
}

/** After changes of what was there before all of them; the document has `now` lines then. */
export function edited(edit: Edit, now: number, changes: readonly Change[]): Edit {
  const first = Math.min(...changes.map(({ range }) => range.start.line));
  const last = Math.max(...changes.map(({ range }) => range.end.line));
  return {
    above: Math.min(edit.above, first),
    below: Math.min(edit.below, edit.now - last - 1),
    saved: edit.saved,
    now,
  };
}

/** From 1, the last one included. */
export function unsavedLines({ above, below, saved }: Edit): { start: number; end: number } {
  const start = Math.min(above + 1, saved);
  return { start, end: Math.max(start, saved - below) };
}

/** The line of the document that has a line of the saved file; undefined if that line may have changed. Both from 0. */
export function inDocument({ above, below, saved, now }: Edit, line: number): number | undefined {
  if (line < above) return line;
  return line >= saved - below ? line + now - saved : undefined;
}

/** The line of the saved file that a line of the document is; undefined if it may have changed. Both from 0. */
export function inSavedFile({ above, below, saved, now }: Edit, line: number): number | undefined {
  if (line < above) return line;
  return line >= now - below ? line - now + saved : undefined;
}
