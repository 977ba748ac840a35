// Which lines of a text are not in an earlier one.

/** Texts with more differing lines than this are told as one block. */
const MAX_LINES = 2_000;

/** The lines of `after`, counted from 0, that are new; for a mere removal the line that stands in its place. */
export function changedLines(before: string, after: string): number[] {
  const a = before.split(/\r?\n/);
  const b = after.split(/\r?\n/);
  let first = 0;
  while (first < a.length && first < b.length && a[first] === b[first]) first++;
  let [lastA, lastB] = [a.length, b.length];
  while (lastA > first && lastB > first && a[lastA - 1] === b[lastB - 1]) [lastA, lastB] = [lastA - 1, lastB - 1];
  if (first === lastA && first === lastB) return [];
  if (first === lastB) return [Math.min(first, b.length - 1)];
  const block = Array.from({ length: lastB - first }, (_, at) => first + at);
  if (lastA - first > MAX_LINES || lastB - first > MAX_LINES) return block;
  const common = inBoth(a.slice(first, lastA), b.slice(first, lastB));
  return block.filter((line) => !common.has(line - first));
}

/** The places in `b` of a longest common subsequence. */
function inBoth(a: string[], b: string[]): Set<number> {
  const width = b.length + 1;
  const length = new Uint16Array((a.length + 1) * width);
  const at = (i: number, j: number) => length[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      length[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const common = new Set<number>();
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      common.add(j);
      [i, j] = [i + 1, j + 1];
    } else if (at(i + 1, j) >= at(i, j + 1)) i++;
    else j++;
  }
  return common;
}
