// What happened on one day, by author: the plot's lanes, and the numbers below it.

import { type Ref, refOf } from "../names.js";
import type { Activity, LogEntry, UndoRow, Version } from "../protocol.js";
import type { Authors, Who } from "./authors.js";

export const KINDS = ["read", "changed", "refused", "overwrote", "back"] as const;
export type Kind = (typeof KINDS)[number];

export interface Mark {
  time: number;
  kind: Kind;
  /** The file; a refused edit's is not on record. */
  ref?: Ref;
  /** Why an edit was refused. */
  cause?: string;
  who: Who;
  added: number;
  removed: number;
}

const CAUSES: Partial<Record<Activity["kind"], string>> = {
  stale: "its copy was out of date",
  notRead: "the file was never read",
  conflict: "the file held something that it had not seen",
};

export interface Lane {
  who: Who;
  /** The oldest first. */
  marks: Mark[];
  counts: Record<Kind, number>;
  files: number;
  added: number;
  removed: number;
}

/** How far an undo's own time and that of the versions that it wrote may lie apart, in milliseconds. */
const NEAR = 3000;

/** The versions that undos wrote: of each file of an undo, the nearest one that was written as undos write. */
function writtenByUndos(log: readonly LogEntry[], undos: readonly UndoRow[]): ReadonlySet<string> {
  const saved = new Map<string, Version[]>();
  for (const { version } of log) {
    if (version.author.kind !== "user" || version.evidence !== "editor") continue;
    const known = saved.get(version.path);
    if (known) known.push(version);
    else saved.set(version.path, [version]);
  }
  const found = new Set<string>();
  for (const { time, paths } of undos) {
    for (const path of paths) {
      const far = (version: Version) => Math.abs(version.time - time);
      const [nearest] = (saved.get(path) ?? []).filter((version) => far(version) < NEAR).sort((one, other) => far(one) - far(other));
      if (nearest) found.add(nearest.clock);
    }
  }
  return found;
}

/** Makes the lanes of the time from `start` to `end`. `log` and `deeds` are the newest first. */
export function lanes(log: readonly LogEntry[], deeds: readonly Activity[], undos: readonly UndoRow[], authors: Authors, start: number, end: number): Lane[] {
  const marks: Mark[] = [];
  const within = (time: number) => time >= start && time < end;
  const written = writtenByUndos(log, undos);
  // The contents that each file had, so that one that comes back is known.
  const had = new Map<Ref, { before: Set<string>; last: string | undefined }>();
  for (let i = log.length - 1; i >= 0; i--) {
    const { version, lines } = log[i]!;
    const ref = refOf(version);
    const known = had.get(ref) ?? { before: new Set<string>(), last: undefined };
    had.set(ref, known);
    const content = version.hash ?? "absent";
    const returned = content !== known.last && known.before.has(content);
    known.before.add(content);
    known.last = content;
    if (!within(version.time)) continue;
    const who = authors.of(version.author);
    const undone = written.has(version.clock);
    const base = { time: version.time, ref, who, added: lines?.added ?? 0, removed: lines?.removed ?? 0 };
    marks.push({ ...base, kind: returned || undone ? "back" : "changed" });
  }
  for (const deed of deeds) {
    if (!within(deed.time)) continue;
    const kind = deed.kind === "read" || deed.kind === "overwrote" ? deed.kind : "refused";
    const [ref, cause] = [deed.uri ?? deed.path ?? undefined, CAUSES[deed.kind]];
    const who = authors.agent(deed.session!, deed.label);
    marks.push({ time: deed.time, kind, who, added: 0, removed: 0, ...(ref === undefined ? {} : { ref }), ...(cause === undefined ? {} : { cause }) });
  }
  marks.sort((one, other) => one.time - other.time);

  const found = new Map<string, Lane & { refs: Set<Ref> }>();
  const laneOf = (who: Who) => {
    let lane = found.get(who.key);
    if (!lane) {
      lane = { who, marks: [], counts: { read: 0, changed: 0, refused: 0, overwrote: 0, back: 0 }, files: 0, added: 0, removed: 0, refs: new Set() };
      found.set(who.key, lane);
    }
    return lane;
  };
  for (const mark of marks) {
    const lane = laneOf(mark.who);
    lane.marks.push(mark);
    lane.counts[mark.kind]++;
    lane.added += mark.added;
    lane.removed += mark.removed;
    if (mark.ref !== undefined && (mark.kind === "changed" || mark.kind === "back")) lane.refs.add(mark.ref);
    lane.files = lane.refs.size;
  }
  const rank = (lane: Lane) => (lane.who.kind === "user" ? 0 : lane.who.kind === "agent" ? 1 : 2);
  return [...found.values()].sort((one, other) => rank(one) - rank(other) || one.who.colour - other.who.colour);
}

const HOUR = 3_600_000;

/** Returns the time that the plot shows: round moments around all marks, at least half an hour, or the whole day if nothing happened. */
export function extent(all: readonly Lane[], start: number, end: number, now: number): [number, number] {
  let [from, to] = [Infinity, -Infinity];
  for (const lane of all) {
    const [first, last] = [lane.marks[0], lane.marks.at(-1)];
    if (first) from = Math.min(from, first.time);
    if (last) to = Math.max(to, last.time);
  }
  if (from > to) return [start, end];
  if (now >= start && now < end) to = Math.max(to, now);
  // Round moments, and not so short a time that a minute looks like a day.
  const step = to - from > 3 * HOUR ? HOUR : HOUR / 6;
  const low = Math.max(start, start + Math.floor((from - start) / step) * step);
  let high = Math.min(end, start + Math.ceil((to - start + 1) / step) * step);
  if (high - low < HOUR / 2) high = Math.min(end, low + HOUR / 2);
  return [Math.min(low, high - HOUR / 2), high];
}

export interface Bin {
  counts: Record<Kind, number>;
  marks: Mark[];
}

/** Sorts a lane's marks into `number` bins of equal length. Empty bins are undefined. */
export function bins(lane: Lane, from: number, to: number, number: number): Array<Bin | undefined> {
  const found = new Array<Bin | undefined>(number);
  for (const mark of lane.marks) {
    const at = Math.min(number - 1, Math.floor(((mark.time - from) / (to - from)) * number));
    if (at < 0) continue;
    const bin = (found[at] ??= { counts: { read: 0, changed: 0, refused: 0, overwrote: 0, back: 0 }, marks: [] });
    bin.counts[mark.kind]++;
    if (bin.marks.length < 200) bin.marks.push(mark);
  }
  return found;
}

/** Returns round moments between two times for an axis: full hours, or parts of one. */
export function ticks(from: number, to: number, most: number): number[] {
  const MINUTE = 60_000;
  const step = [5, 10, 15, 30, 60, 120, 180, 240, 360].map((minutes) => minutes * MINUTE).find((size) => (to - from) / size <= most) ?? 360 * MINUTE;
  const day = new Date(from);
  day.setHours(0, 0, 0, 0);
  const found: number[] = [];
  for (let at = day.getTime(); at <= to; at += step) if (at >= from) found.push(at);
  return found;
}
