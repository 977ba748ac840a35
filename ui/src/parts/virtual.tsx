// A long list of which only the visible rows are in the document.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

interface Props<T> {
  items: readonly T[];
  /** In pixels. Rows of a list may differ. */
  heightOf: (item: T) => number;
  keyOf: (item: T) => string | number;
  render: (item: T, index: number) => ComponentChildren;
  /** What the list is, for screen readers. */
  label: string;
  class?: string;
  /** The row that is kept in view when it changes. */
  current?: number;
  /** What the items depend on, where they change in place. */
  revision?: unknown;
  role?: "list" | "listbox";
}

/** Rows above and below the visible ones. */
const MARGIN = 6;

export function Virtual<T>({ items, heightOf, keyOf, render, label, class: name, current, revision, role = "list" }: Props<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const tops = useMemo(() => {
    const found = new Float64Array(items.length + 1);
    for (let i = 0; i < items.length; i++) found[i + 1] = found[i]! + heightOf(items[i]!);
    return found;
  }, [items, items.length, revision]);
  const total = tops[items.length]!;

  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setHeight(entry!.contentRect.height));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);

  // Rows that come above the first visible one do not move what is looked at.
  const anchor = useRef<{ key: string | number; offset: number } | undefined>(undefined);
  useLayoutEffect(() => {
    const held = anchor.current;
    if (!held || top === 0) return;
    const at = items.findIndex((item) => keyOf(item) === held.key);
    if (at >= 0 && Math.abs(tops[at]! + held.offset - top) > 1) box.current!.scrollTop = tops[at]! + held.offset;
  }, [tops]);

  useLayoutEffect(() => {
    if (current === undefined || current < 0 || current >= items.length) return;
    const view = box.current!;
    if (tops[current]! < view.scrollTop) view.scrollTop = Math.max(0, tops[current]! - 32);
    else if (tops[current + 1]! > view.scrollTop + view.clientHeight) view.scrollTop = tops[current + 1]! - view.clientHeight + 8;
  }, [current, tops, height]);

  const first = Math.max(0, find(tops, items.length, top) - MARGIN);
  const last = Math.min(items.length, find(tops, items.length, top + height) + 1 + MARGIN);
  const visible = find(tops, items.length, top);
  const held = items[visible];
  anchor.current = held === undefined ? undefined : { key: keyOf(held), offset: top - tops[visible]! };

  const rows = [];
  for (let i = first; i < last; i++) {
    const item = items[i]!;
    rows.push(
      <div key={keyOf(item)} class="v-row" role={role === "list" ? "listitem" : "presentation"} aria-setsize={role === "list" ? items.length : undefined} aria-posinset={role === "list" ? i + 1 : undefined} style={{ top: `${tops[i]}px`, height: `${tops[i + 1]! - tops[i]!}px` }}>
        {render(item, i)}
      </div>,
    );
  }
  return (
    <div ref={box} class={`v-box ${name ?? ""}`} tabIndex={0} role="group" aria-label={label} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
      <div class="v-all" role={items.length > 0 ? role : undefined} aria-label={items.length > 0 ? label : undefined} style={{ height: `${total}px` }}>
        {rows}
      </div>
    </div>
  );
}

/** The number of the row at a height. */
function find(tops: Float64Array, rows: number, at: number): number {
  let [low, high] = [0, Math.max(0, rows - 1)];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle]! <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}
