// The question before changes are kept or undone together: what that takes.

import { commands } from "../../live.js";
import { doubtsOf, mayBeYours } from "../../model/doubts.js";
import { filesOf } from "../../model/groups.js";
import { type Item, rowOf } from "../../model/queue.js";
import { refShown } from "../../names.js";
import { Counts, Dialog } from "../../parts/basics.js";
import { count } from "../../times.js";
import { Whose } from "./whose.js";

/** Files that are named. */
const NAMED = 200;

interface Props {
  verb: "keep" | "undo";
  /** What is kept or undone: "the changes of src/a.js". */
  what: string;
  /** Those that are still in the queue. */
  items: readonly Item[];
  /** The whole queue. */
  queue: readonly Item[];
  off: boolean;
  act: (items: readonly Item[]) => void;
  close: () => void;
}

export function Ask({ verb, what, items, queue, off, act, close }: Props) {
  const isUndo = verb === "undo";
  const sure = isUndo ? items.filter((item) => !mayBeYours(rowOf(item))) : items;
  const doubts = isUndo ? doubtsOf(items.map(rowOf), queue.map(rowOf)) : [];
  const verbs = isUndo ? "Undo" : "Keep";
  return (
    <Dialog title={`${verbs} ${what}?`} onClose={close}>
      {items.length === 0 && <p>Nothing of it is left in the queue.</p>}
      {sure.length > 0 && (
        <p>
          {count(sure.length, "change")} in {count(filesOf(sure.map(rowOf)).length, "file")}, <Counts {...sums(sure)} />.{" "}
          {isUndo ? "Lines that others have written stay. You can take it back." : "Nothing is written; the changes leave the queue."}
        </p>
      )}
      <FileList items={sure} />
      <Whose doubts={doubts} row={(command) => commands.get(command)} answered={() => undefined} />
      <p class="actions">
        <button type="button" class="primary" disabled={off || sure.length === 0} onClick={() => { close(); act(sure); }}>{verbs}{sure.length > 0 && ` ${count(sure.length, "change")}`}</button>
        <button type="button" autofocus onClick={close}>Cancel</button>
      </p>
    </Dialog>
  );
}

/** The lines that changes added and removed. */
export function sums(items: readonly Item[]): { added: number; removed: number } {
  const all = { added: 0, removed: 0 };
  for (const item of items) {
    if (item.kind !== "hunk") continue;
    all.added += item.added;
    all.removed += item.removed;
  }
  return all;
}

/** The files of changes, with what changed in each. */
export function FileList({ items }: { items: readonly Item[] }) {
  const files = new Map<string, Item[]>();
  for (const item of items) files.set(item.ref, [...(files.get(item.ref) ?? []), item]);
  if (files.size === 0) return null;
  return (
    <ul class="group-files" tabIndex={0} aria-label="Files">
      {[...files].slice(0, NAMED).map(([ref, own]) => (
        <li key={ref}>
          <code title={refShown(ref)}>{refShown(ref)}</code>
          {own.map((item) => item.kind === "whole" && <span key={item.key} class="soft">{item.what}</span>)}
          <Counts {...sums(own)} />
        </li>
      ))}
      {files.size > NAMED && <li class="soft">and {files.size - NAMED} more</li>}
    </ul>
  );
}
