// The rows of the queue: groups and the changes in them.

import { commands } from "../../live.js";
import { commandShown, mayBeYours } from "../../model/doubts.js";
import type { Group } from "../../model/groups.js";
import { type Hunk, type Item, type Row, rowOf, type Whole } from "../../model/queue.js";
import { shown, shownText, split } from "../../names.js";
import { Badge, Counts } from "../../parts/basics.js";
import { count } from "../../times.js";

/** What a group is called. */
export function titleOf({ by, name }: Group<Item>): string {
  if (by === "command") return shown(commandShown(name, commands.get(name)));
  return by === "edits" ? "edits, or several commands" : shown(name);
}

interface Props {
  row: Row;
  current: string | undefined;
  choose: (key: string) => void;
  turn: (key: string) => void;
}

export function QueueRow({ row, current, choose, turn }: Props) {
  const { key, depth } = row;
  const indent = { paddingLeft: `${4 + 16 * depth}px` };
  if (row.kind === "group") {
    const { group, isLate, isOpen } = row;
    const title = titleOf(group);
    const { directory, name } = group.by === "file" ? split(title) : { directory: "", name: title };
    const who = group.by === "session" ? group.all[0]!.who : [];
    return (
      <h2 class="group" style={indent}>
        <button type="button" class="quiet turn" aria-expanded={isOpen} aria-label={`The changes of ${title}`} onClick={() => turn(key)} />
        <button type="button" class="group-name" title={title} aria-current={key === current ? "true" : undefined} onClick={() => choose(key)}>
          {who.map((one) => <Badge key={one.key} who={one} />)}
          <span class="path"><span class="dir"><bdi>{directory}</bdi></span><span class="base">{name}</span></span>
          <span class="soft">{isLate ? "later, " : ""}{group.isMany ? count(group.files, "file") : group.all.length}</span>
        </button>
      </h2>
    );
  }
  const { item } = row;
  const { where, text, note } = item.kind === "hunk" ? hunkRow(item) : wholeRow(item);
  return (
    <button type="button" class={`hunk-row${item.isViewed ? " viewed" : ""}`} style={indent} aria-current={key === current ? "true" : undefined} onClick={() => choose(key)}>
      <span class="hunk-where soft">{where}</span>
      <code class="hunk-text">{row.isNamed ? `${split(shown(rowOf(item).path)).name}: ` : ""}{text}</code>
      {item.isViewed && <span class="check" title="viewed"><span class="unseen">viewed</span></span>}
      {note}
      {item.who.map((who) => <Badge key={who.key} who={who} isLikely={mayBeYours(rowOf(item))} />)}
    </button>
  );
}

function hunkRow({ hunk, added, removed }: Hunk) {
  return {
    where: hunk.created ? "new" : hunk.deleted ? "del" : hunk.lines.start,
    text: firstLine(hunk.after) || firstLine(hunk.before) || "(empty lines)",
    note: <Counts added={added} removed={removed} />,
  };
}

function wholeRow({ file, what }: Whole) {
  return { where: file.modeBefore == null ? "new" : file.mode == null ? "del" : "", text: what, note: null };
}

/** The first line that is not blank, short enough for a row. */
function firstLine(text: string): string {
  const line = /[^\n]*\S[^\n]*/.exec(text.slice(0, 2000))?.[0] ?? "";
  return shownText(line.trim().slice(0, 120));
}
