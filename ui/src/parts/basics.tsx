// Small parts that every view uses.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { now } from "../live.js";
import type { Who } from "../model/authors.js";
import { type Ref, refShown, split } from "../names.js";
import { address } from "../router.js";
import { ago, clockTime, dayName, exact } from "../times.js";
import { meaning } from "./words.js";

/**
 * An author: colour, letters and shape, and the name for those who see none of
 * them. `isLikely`: it may be the user instead (UNDO-7).
 */
export function Badge({ who, named = false, isLikely = false }: { who: Who; named?: boolean; isLikely?: boolean }) {
  const name = isLikely ? `${who.name} or you` : who.name;
  return (
    <span class="who" title={named ? undefined : name}>
      <span class={`badge ${colourClass(who)}`} aria-hidden="true">{who.mark}{isLikely && "?"}</span>
      <span class={named ? "who-name" : "unseen"}>{name}</span>
    </span>
  );
}

export function colourClass(who: Who): string {
  return who.kind === "agent" ? `agent a${who.colour}` : who.kind;
}

/** A word of the glossary, with its meaning. */
export function Word({ is, children }: { is: string; children?: ComponentChildren }) {
  return <dfn title={meaning(is)}>{children ?? is}</dfn>;
}

/** How long ago, with the exact time as a tooltip. */
export function Ago({ time }: { time: number }) {
  return <time dateTime={new Date(time).toISOString()} title={exact(time)}>{ago(time, now.value)}</time>;
}

/** A time of the present day as its hour and minute, another one with its day. */
export function At({ time }: { time: number }) {
  const day = dayName(time) === dayName(now.value) ? "" : `${dayName(time)} `;
  return <time dateTime={new Date(time).toISOString()} title={exact(time)}>{day}{clockTime(time, false)}</time>;
}

/** A file's name, which leads to its history. A long path loses its beginning, never the name. */
export function FileLink({ file, query, at }: { file: Ref; query?: Record<string, string | undefined>; at?: string }) {
  const { directory, name } = split(refShown(file));
  return (
    <a class="path" href={address("file", file, query)} title={refShown(file)}>
      {directory !== "" && <span class="dir"><bdi>{directory}</bdi></span>}
      <span class="base">{name}{at}</span>
    </a>
  );
}

/** `+12 −3`. */
export function Counts({ added, removed }: { added: number; removed: number }) {
  if (added === 0 && removed === 0) return null;
  return (
    <span class="counts">
      <span class="plus">+{added}</span> <span class="minus">−{removed}</span>
    </span>
  );
}

/** A command to be copied. */
export function Command({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = () => {
    void navigator.clipboard?.writeText(text).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    });
  };
  return (
    <span class="command">
      <code>{text}</code>
      <button type="button" class="quiet" onClick={copy} aria-label={`Copy ${text}`}>{copied ? "Copied" : "Copy"}</button>
    </span>
  );
}

/** What a view shows where there is nothing to show, and what to do next. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

interface Choice<V extends string> {
  legend: string;
  value: V;
  options: ReadonlyArray<readonly [value: V, text: string]>;
  onChange: (value: V) => void;
}

/** One of a few. */
export function Choices<V extends string>({ legend, value, options, onChange }: Choice<V>) {
  return (
    <fieldset class="choices">
      <legend class="unseen">{legend}</legend>
      {options.map(([one, text]) => (
        <label key={one} class={one === value ? "on" : ""}>
          <input type="radio" name={legend} checked={one === value} onChange={() => onChange(one)} />
          <span>{text}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** A dialog over the page. Escape closes it. */
export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = dialog.current!;
    shown.showModal();
    return () => shown.close();
  }, []);
  return (
    <dialog ref={dialog} aria-label={title} onClose={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
      <div class="dialog">
        <h2>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}
