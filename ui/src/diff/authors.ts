// The authors of lines, in a gutter. They are asked for only of the lines that
// are looked at, in blocks, since a long file has too many to ask for at once.

import { type Extension, RangeSet, StateEffect } from "@codemirror/state";
import { type EditorView, gutter, GutterMarker, type ViewUpdate, ViewPlugin } from "@codemirror/view";
import { call } from "../api.js";
import { authors, isLikely, type Who } from "../model/authors.js";
import { evidence } from "../model/timeline.js";
import { named, type Ref } from "../names.js";
import { colourClass } from "../parts/basics.js";
import type { BlameLine } from "../protocol.js";
import { exact } from "../times.js";

/** Lines of one request. */
const BLOCK = 400;

const arrived = StateEffect.define<null>();

class Marker extends GutterMarker {
  constructor(readonly who: Who, readonly text: string, readonly title: string) {
    super();
  }
  override eq(other: Marker): boolean {
    return other.who.key === this.who.key && other.text === this.text && other.title === this.title;
  }
  override toDOM(): Node {
    const mark = document.createElement("span");
    mark.className = `tm-author ${colourClass(this.who)}`;
    mark.textContent = this.text;
    mark.title = this.title;
    return mark;
  }
}

/** A gutter with the authors of version `at` of a file. */
export function authorGutter(file: Ref, at: string): Extension {
  const lines = new Map<number, BlameLine>();
  const asked = new Set<number>();
  let waiting: ReturnType<typeof setTimeout> | undefined;

  const ask = (view: EditorView) => {
    clearTimeout(waiting);
    // Not for each step of a fast scroll.
    waiting = setTimeout(() => {
      for (const { from, to } of view.visibleRanges) {
        const [first, last] = [view.state.doc.lineAt(from).number, view.state.doc.lineAt(to).number];
        for (let block = Math.floor((first - 1) / BLOCK); block <= Math.floor((last - 1) / BLOCK); block++) void load(view, block);
      }
    }, 60);
  };
  const load = async (view: EditorView, block: number) => {
    if (asked.has(block)) return;
    asked.add(block);
    try {
      const start = block * BLOCK + 1;
      const blame = await call("file/blame", { ...named(file), at, range: { start, end: start + BLOCK - 1 } });
      blame.lines.forEach((line, index) => lines.set(blame.start + index, line));
      view.dispatch({ effects: arrived.of(null) });
    } catch {
      // Without authors: the content is no longer kept, or the daemon is gone.
    }
  };
  const heard = (update: ViewUpdate) => update.transactions.some((transaction) => transaction.effects.some((effect) => effect.is(arrived)));

  return [
    ViewPlugin.fromClass(
      class {
        constructor(view: EditorView) {
          ask(view);
        }
        update(update: ViewUpdate) {
          if (update.viewportChanged || update.geometryChanged) ask(update.view);
        }
        destroy() {
          clearTimeout(waiting);
        }
      },
    ),
    gutter({
      class: "tm-authors",
      markers: () => RangeSet.empty,
      lineMarker: (view, block) => {
        const number = view.state.doc.lineAt(block.from).number;
        const line = lines.get(number);
        if (!line) return null;
        const who = authors.ofLine(line);
        const before = lines.get(number - 1);
        const first = before === undefined || authors.ofLine(before).key !== who.key || before.clock !== line.clock;
        const [mark, name] = isLikely(line) ? [`${who.mark}?`, `${who.name} or you`] : [who.mark, who.name];
        const commit = line.commit ? `: ${line.commit.id.slice(0, 8)}` : "";
        return new Marker(who, first ? mark : "", `${name}, ${exact(line.time)}: ${evidence(line)}${commit}`);
      },
      lineMarkerChange: heard,
      initialSpacer: () => new Marker(authors.of(undefined), "you", ""),
    }),
  ];
}
