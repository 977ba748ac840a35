// One change of the queue, as it is shown to decide about it.

import { useEffect, useMemo, useState } from "preact/hooks";
import { call } from "../../api.js";
import { review } from "../../live.js";
import { lineCount } from "../../model/doubts.js";
import { lineStarts } from "../../model/lines.js";
import type { Hunk, Item, Whole } from "../../model/queue.js";
import { sides } from "../../model/whole.js";
import { named } from "../../names.js";
import { Diff } from "../../parts/diff.js";

/** Shows what a change did. */
export const Shown = ({ item }: { item: Item }) => (item.kind === "hunk" ? <HunkDiff item={item} /> : <Sides item={item} />);

/** Where a change is in its file, in a few words. */
export function where(item: Item): string {
  if (item.kind === "whole") return item.what;
  const { hunk } = item;
  if (hunk.created) return "created the file";
  if (hunk.deleted) return "deleted the file";
  const { start, end } = hunk.lines;
  if (hunk.after === "") return `removed after line ${start}`;
  return start === end ? `line ${start}` : `lines ${start}–${end}`;
}

/** What a change without lines altered, without it and with it. */
function Sides({ item }: { item: Whole }) {
  const rows = sides(item.file);
  if (rows.length === 0) return <div class="whole"><p class="soft">The file was a symlink before, so its content is kept or undone as a whole.</p></div>;
  return (
    <div class="whole" tabIndex={0} role="group" aria-label="What changed">
      <table>
        <thead>
          <tr><td /><th scope="col">Without the change</th><th scope="col">With the change</th></tr>
        </thead>
        <tbody>
          {rows.map(({ name, before, after }) => (
            <tr key={name}><th scope="row">{name}</th><td><code class="minus">{before || "–"}</code></td><td><code class="plus">{after || "–"}</code></td></tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function HunkDiff({ item }: { item: Hunk }) {
  const { hunk, ref } = item;
  const [around, setAround] = useState<{ key: string; before: string; after: string; lines: number }>();
  useEffect(() => {
    let over = false;
    surroundings(item).then((found) => !over && setAround({ key: item.key, ...found }));
    return () => void (over = true);
  }, [item.key, hunk.lines.start, hunk.before, hunk.after]);
  // The texts are the same for the same id, also where the list was read again.
  const what = useMemo(() => {
    if (around?.key !== item.key) return undefined;
    const start = hunk.lines.start + (hunk.after === "" && !hunk.deleted ? 1 : 0) - around.lines;
    const text = (own: string) => (own === "" && around.lines === 0 && around.after === "" ? "" : (around.before + own + around.after).replace(/\n$/, ""));
    return {
      file: ref,
      a: { text: text(hunk.before), label: "Without the change", start },
      b: { text: text(hunk.after), label: "With the change", start },
      mode: "inline" as const,
      folded: false,
    };
  }, [item.key, around]);
  return what ? <Diff shown={what} class="small" /> : <div class="diff" />;
}

/** Lines that are shown above and below a change. */
const CONTEXT = 4;
/** The newest file whose content was asked for. */
let looked: { ref: string; at: number; content: Promise<string | undefined> } | undefined;

/** The lines around a hunk; none where the file is of another moment than the list. */
async function surroundings({ hunk, ref }: Hunk): Promise<{ before: string; after: string; lines: number }> {
  const none = { before: "", after: "", lines: 0 };
  if (hunk.created || hunk.deleted) return none;
  const at = review.peek().at ?? 0;
  if (looked?.ref !== ref || looked.at !== at) {
    const content = call("file/content", named(ref)).then((found) => (found.encoding === "utf8" ? found.text : undefined), () => undefined);
    looked = { ref, at, content };
  }
  const text = await looked.content;
  if (text === undefined) return none;
  const starts = lineStarts(text);
  const first = hunk.after === "" ? hunk.lines.start + 1 : hunk.lines.start;
  const from = Math.min(starts[first - 1] ?? text.length, text.length);
  if (!text.startsWith(hunk.after, from)) return none;
  const to = from + hunk.after.length;
  const above = Math.max(1, first - CONTEXT);
  const below = first + lineCount(hunk.after) - 1 + CONTEXT;
  return { before: text.slice(starts[above - 1] ?? from, from), after: text.slice(to, Math.max(to, Math.min(starts[below] ?? text.length, text.length))), lines: first - above };
}
