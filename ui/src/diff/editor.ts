// The diff of two texts, by CodeMirror: side by side, inline, or one text alone.

import { Change, MergeView, diff, unifiedMergeView } from "@codemirror/merge";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightSpecialChars, lineNumbers } from "@codemirror/view";
import type { Span } from "../model/lines.js";
import { HIDDEN_CLASS, type Ref, shown } from "../names.js";
import { authorGutter } from "./authors.js";
import { languageOf } from "./languages.js";
import { appearance } from "./theme.js";

/**
 * CodeMirror's line for folded lines can only be clicked. Here it becomes a
 * button for the keyboard and for screen readers, whenever CodeMirror draws one.
 */
function unfoldByKey(room: HTMLElement): () => void {
  const mend = () => {
    for (const line of room.querySelectorAll<HTMLElement>(".cm-collapsedLines:not([role])")) {
      line.textContent = (line.textContent ?? "").replace(/[^\d\p{L} ]/gu, "").trim();
      line.setAttribute("role", "button");
      line.tabIndex = 0;
      line.title = "Show these lines";
      line.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        line.click();
      });
    }
  };
  const observer = new MutationObserver(mend);
  observer.observe(room, { childList: true, subtree: true });
  return () => observer.disconnect();
}

export interface Side {
  text: string;
  /** What it is, for screen readers: "src/a.rs, version 1:17". */
  label: string;
  /** The version whose authors are shown; without it, no authors are. */
  at?: string;
  /** The number of the first line; 1 by default. */
  start?: number;
}

export interface Shown {
  file: Ref;
  a: Side;
  b: Side;
  mode: "side" | "inline";
  /** Only `b`, without changes: there is nothing to compare it with. */
  alone?: boolean;
  /** Whether lines without changes are folded. */
  folded: boolean;
  /** The daemon's own line diff; computed here if it is undefined. */
  spans?: readonly Span[] | undefined;
}

/** Texts above this have no colours: their parser would take its time from the reader's. */
const MOST_COLOURED = 1_000_000;
/** Where more characters than this were removed at one place, both texts stand side by side: an inline diff draws all that was removed. */
const MOST_INLINE = 60_000;
/** A change above this is marked by lines only. */
const MOST_MARKED = 4_000;

export interface Drawn {
  destroy(): void;
}

export async function draw(parent: HTMLElement, root: ShadowRoot, what: Shown): Promise<Drawn> {
  const mended = unfoldByKey(parent);
  const drawn = await drawIn(parent, root, what);
  return {
    destroy() {
      mended();
      drawn.destroy();
    },
  };
}

async function drawIn(parent: HTMLElement, root: ShadowRoot, what: Shown): Promise<Drawn> {
  const { a, b, folded } = what;
  const coloured = Math.max(a.text.length, b.text.length) <= MOST_COLOURED;
  const language = coloured ? await languageOf(what.file) : undefined;
  const both: Extension[] = [
    EditorState.readOnly.of(true),
    EditorView.editable.of(false),
    highlightSpecialChars({ addSpecialChars: new RegExp(`[${HIDDEN_CLASS}]`, "gu"), render: escape }),
    drawSelection(),
    appearance,
    language ?? [],
  ];
  const of = (side: Side, ...more: Extension[]): Extension[] => [
    ...both,
    EditorView.contentAttributes.of({ "aria-label": side.label, "aria-readonly": "true", tabindex: "0" }),
    lineNumbers({ formatNumber: (line) => String(line + (side.start ?? 1) - 1) }),
    side.at === undefined ? [] : authorGutter(what.file, side.at),
    ...more,
  ];
  const one = (side: Side, name: string): Drawn => {
    const all = EditorView.editorAttributes.of({ class: name });
    return new EditorView({ parent, root, doc: side.text, extensions: of(side, all) });
  };
  if (what.alone) return one(b, "tm-alone");
  if (a.text === "") return one(b, "tm-all-added");
  if (b.text === "") return one(a, "tm-all-removed");

  const changes = what.spans ? byLines(what.spans, a.text, b.text) : undefined;
  const diffConfig = changes ? { override: () => changes } : { scanLimit: 500, timeout: 40 };
  const collapse = folded ? { collapseUnchanged: { margin: 3, minSize: 6 } } : {};
  const removedAtOnce = Math.max(0, ...(what.spans ?? []).map((span) => span.toA - span.fromA));
  if (what.mode === "inline" && removedAtOnce < MOST_INLINE) {
    return new EditorView({
      parent,
      root,
      doc: b.text,
      extensions: of(b, unifiedMergeView({ original: a.text, mergeControls: false, gutter: true, diffConfig, ...collapse })),
    });
  }
  return new MergeView({
    parent,
    root,
    a: { doc: a.text, extensions: of(a) },
    b: { doc: b.text, extensions: of(b) },
    gutter: true,
    diffConfig,
    ...collapse,
  });
}

/** A hidden character as in names: CodeMirror's own signs for them are in few fonts. */
function escape(code: number, description: string | null): HTMLElement {
  const span = document.createElement("span");
  span.className = "cm-specialChar";
  span.textContent = shown(String.fromCodePoint(code));
  if (description !== null) span.title = description;
  return span;
}

/** The daemon's changes; inside small ones, the characters that differ. */
function byLines(spans: readonly Span[], a: string, b: string): readonly Change[] {
  return spans.flatMap(({ fromA, toA, fromB, toB }) => {
    const [before, after] = [a.slice(fromA, toA), b.slice(fromB, toB)];
    if (before === "" || after === "" || before.length + after.length > MOST_MARKED) return [new Change(fromA, toA, fromB, toB)];
    return diff(before, after, { scanLimit: 200, timeout: 5 }).map((change) => new Change(fromA + change.fromA, fromA + change.toA, fromB + change.fromB, fromB + change.toB));
  });
}
