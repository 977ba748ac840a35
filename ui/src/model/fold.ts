// Events that belong together become one entry of the feed: what one command
// changed, what one author changed or read without a pause, and the copies that
// a change made stale. The number of entries, and of names in them, is bounded.

import { type Ref, refOf, shown } from "../names.js";
import type { CommandRow, Event, Version } from "../protocol.js";
import { count } from "../times.js";
import { type Authors, isLikely, TOUCHMARK, USER, type Who } from "./authors.js";

/** Entries that are kept. */
const ENTRIES = 500;
/** Names that an entry keeps; further ones are counted. */
const NAMES = 100;
/** Paths, commands and clocks whose entry is remembered. */
const REMEMBERED = 4096;
/** Changes of one author with a longer pause between them are two entries, in milliseconds. */
const PAUSE = 1500;

export type Verb =
  | "created" | "changed" | "deleted" | "renamed" | "read"
  | "opened" | "closed" | "forgotten" | "stale" | "kept" | "aborted" | "lapsed" | "ran" | "undid" | "redid" | "degraded" | "overflow" | "corrected";

export interface Entry {
  readonly id: number;
  /** Of the newest event in it. */
  time: number;
  who: Who;
  verb: Verb;
  /** The first names in it. */
  refs: Ref[];
  /** How many files are in it. */
  files: number;
  /** How many events are in it. */
  events: number;
  added: number;
  removed: number;
  /** The sessions whose copies it made stale, by their keys. */
  staleFor: Map<string, Who>;
  /** The command that did it. */
  command?: { id: string; text?: string };
  /** Whether a part of it may be the user's (UNDO-7). */
  isLikely?: boolean;
  /** What else is to be said. */
  note?: string;
  /** Raised by each change, so that a list knows what to draw again. */
  revision: number;
}

class Bounded<K, V> {
  readonly #map = new Map<K, V>();
  get(key: K): V | undefined {
    return this.#map.get(key);
  }
  set(key: K, value: V): void {
    this.#map.delete(key);
    this.#map.set(key, value);
    if (this.#map.size > REMEMBERED) for (const oldest of this.#map.keys()) return void this.#map.delete(oldest);
  }
  clear(): void {
    this.#map.clear();
  }
}

const CHANGES: ReadonlySet<Verb> = new Set<Verb>(["created", "changed", "deleted", "renamed"]);

export class Fold {
  /** The oldest first. */
  readonly entries: Entry[] = [];
  /** Raised by each event that changed something. */
  revision = 0;
  readonly #byRef = new Bounded<Ref, Entry>();
  readonly #byCommand = new Bounded<string, Entry>();
  readonly #writers = new Bounded<string, string>();
  #next = 1;

  constructor(readonly authors: Authors) {}

  clear(): void {
    this.entries.length = 0;
    this.#byRef.clear();
    this.#byCommand.clear();
    this.#writers.clear();
    this.revision++;
  }

  push(event: Event, now: number): void {
    const agent = (of: { session: string; label?: string | null }) => this.authors.agent(of.session, of.label);
    switch (event.type) {
      case "version":
        return this.version(event.version, event.lines ?? undefined);
      case "stale":
        return this.#stale(agent(event), refOf(event.file), event.file.state === "deleted", now);
      case "read":
        return this.#read(agent(event), refOf(event), now);
      case "edit":
        if (event.phase !== "aborted" && event.phase !== "lapsed") return;
        return void this.#add(now, agent(event), event.phase, event.paths);
      case "session":
        return void this.#add(now, agent(event), event.phase, []);
      case "command":
        return this.command(event.command);
      case "recovered":
        return void this.#add(now, TOUCHMARK, "kept", [refOf(event)], `in ${shown(event.kept)}`);
      case "undone":
        return this.undone(now, event.redo === true, event.undo, event.files, event.label ?? undefined);
      case "degraded":
        return void this.#add(now, TOUCHMARK, "degraded", event.path ? [event.path] : [], shown(event.cause));
      case "overflow":
        return void this.#add(now, TOUCHMARK, "overflow", [], "too much at once: every tracked file is compared with the disk");
      default:
        // A later daemon's event.
        return;
    }
  }

  version(version: Version, lines?: { added: number; removed: number }): void {
    const who = this.authors.of(version.author);
    const ref = version.uri ?? version.path;
    if (version.amends) {
      const before = this.#writers.get(version.amends);
      this.#writers.set(version.amends, who.key);
      // It confirms what was said, or corrects an entry that is not shown.
      if (before === undefined || before === who.key) return;
      this.#add(version.time, who, "corrected", [ref], "the change is this author's, not who was named first");
      return;
    }
    this.#writers.set(version.clock, who.key);
    const verb: Verb = version.kind === "modified" ? "changed" : version.kind;
    const open = version.command ? this.#byCommand.get(version.command) : this.#last(who, version.time);
    const entry = open ?? this.#add(version.time, who, verb, []);
    if (version.command && !open) {
      entry.command = { id: version.command };
      this.#byCommand.set(version.command, entry);
    }
    if (entry.verb !== verb) entry.verb = "changed";
    if (!entry.command && version.evidence === "gap") entry.note = "while touchmark was not watching";
    if (isLikely(version)) entry.isLikely = true;
    if (version.overwritten) entry.note = "replaced before any session saw it";
    this.#more(entry, ref, version.time);
    entry.added += lines?.added ?? 0;
    entry.removed += lines?.removed ?? 0;
  }

  command(row: CommandRow): void {
    const entry = this.#byCommand.get(row.command);
    if (!entry) return;
    const branches = row.branchBefore && row.branchAfter && row.branchBefore !== row.branchAfter;
    entry.command = { id: row.command, text: shown(row.label ?? "a command") };
    const notes = [
      branches && `${shown(row.branchBefore!)} to ${shown(row.branchAfter!)}`,
      row.unwitnessed && `not all writes seen: ${shown(row.unwitnessed)}`,
    ].filter(Boolean);
    if (notes.length > 0) entry.note = notes.join(", ");
    this.#touch(entry);
  }

  /** An undo, or what took one back. */
  undone(time: number, isRedo: boolean, undo: string, files: number, of?: string): void {
    this.#add(time, USER, isRedo ? "redid" : "undid", [], `${of === undefined ? "" : `${shown(of)} in `}${count(files, "file")} (${undo})`);
  }

  /** The newest entry, if it is this author's changes of a moment ago. */
  #last(who: Who, time: number): Entry | undefined {
    const last = this.entries.at(-1);
    const fits = last && CHANGES.has(last.verb) && !last.command && last.who.key === who.key && time - last.time < PAUSE;
    return fits ? last : undefined;
  }

  #read(who: Who, ref: Ref, now: number): void {
    const last = this.entries.at(-1);
    const same = last?.verb === "read" && last.who.key === who.key && now - last.time < 4 * PAUSE;
    this.#more(same ? last : this.#add(now, who, "read", []), ref, now, false);
  }

  #stale(who: Who, ref: Ref, gone: boolean, now: number): void {
    const cause = this.#byRef.get(ref);
    if (cause && CHANGES.has(cause.verb)) {
      cause.staleFor.set(who.key, who);
      return this.#touch(cause);
    }
    this.#add(now, who, "stale", [ref], gone ? "the file is gone" : "the copy is out of date");
  }

  #more(entry: Entry, ref: Ref, time: number, remember = true): void {
    const known = entry.refs.includes(ref) || (entry.files > NAMES && this.#byRef.get(ref) === entry);
    if (!known) {
      entry.files++;
      if (entry.refs.length < NAMES) entry.refs.push(ref);
    }
    if (remember) this.#byRef.set(ref, entry);
    entry.events++;
    entry.time = Math.max(entry.time, time);
    this.#touch(entry);
  }

  #add(time: number, who: Who, verb: Verb, refs: Ref[], note?: string): Entry {
    const entry: Entry = {
      id: this.#next++, time, who, verb, refs: refs.slice(0, NAMES), files: refs.length, events: refs.length,
      added: 0, removed: 0, staleFor: new Map(), revision: 0, ...(note === undefined ? {} : { note }),
    };
    this.entries.push(entry);
    if (this.entries.length > ENTRIES) this.entries.shift();
    this.revision++;
    return entry;
  }

  #touch(entry: Entry): void {
    entry.revision++;
    this.revision++;
  }
}
