// A diff on the page. CodeMirror is loaded when the first one is shown, and
// lives in a shadow root: there it keeps its styles in adopted style sheets,
// which the content policy allows; it would need inline styles elsewhere.

import { useEffect, useRef, useState } from "preact/hooks";
import { sentence } from "../api.js";
import type { Drawn, Shown } from "../diff/editor.js";

const SHEET = `
  :host { display: block; height: 100%; }
  .room { height: 100%; overflow: auto; }
  .room > .cm-editor { min-height: 100%; }
  .cm-mergeView { height: 100%; }
  .tm-all-added .cm-line { background: var(--added); }
  .tm-all-removed .cm-line { background: var(--removed); }
`;

let sheet: CSSStyleSheet | undefined;

export function Diff({ shown, class: name }: { shown: Shown; class?: string }) {
  const host = useRef<HTMLDivElement>(null);
  const [error, setError] = useState<string>();
  useEffect(() => {
    let over = false;
    let drawn: Drawn | undefined;
    const here = host.current!;
    const root = here.shadowRoot ?? here.attachShadow({ mode: "open" });
    if (!sheet) {
      sheet = new CSSStyleSheet();
      sheet.replaceSync(SHEET);
    }
    if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
    const room = document.createElement("div");
    room.className = "room";
    root.append(room);
    setError(undefined);
    import("../diff/editor.js")
      .then(({ draw }) => draw(room, root, shown))
      .then(
        (made) => {
          if (over) return made.destroy();
          drawn = made;
          here.dataset.drawn = "true";
        },
        (wrong: unknown) => setError(sentence(wrong)),
      );
    return () => {
      over = true;
      drawn?.destroy();
      room.remove();
    };
  }, [shown]);
  return (
    <>
      {error && <p class="wrong" role="alert">{error}</p>}
      <div ref={host} class={`diff ${name ?? ""}`} />
    </>
  );
}
