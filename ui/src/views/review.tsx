// Review: what agents changed, one by one or in groups, to keep or to undo.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, call, sentence } from "../api.js";
import { isTyping } from "../app.js";
import { commands, review, undos } from "../live.js";
import { authors, type Who } from "../model/authors.js";
import { isWaiting } from "../model/comments.js";
import { mayBeYours } from "../model/doubts.js";
import type { By, Group } from "../model/groups.js";
import { filtered, following, isStop, type Item, itemsOf, listed, type Row, rowOf } from "../model/queue.js";
import { named, refOf, refShown, shown } from "../names.js";
import { Ago, Badge, Choices, Command, Counts, Empty, FileLink, Word } from "../parts/basics.js";
import { toast } from "../parts/toast.js";
import { Virtual } from "../parts/virtual.js";
import type { UndoneFile } from "../protocol.js";
import { remember, remembered } from "../remembered.js";
import { address, go } from "../router.js";
import { connection } from "../stream.js";
import { count } from "../times.js";
import { Ask, FileList, sums } from "./review/ask.js";
import { Shown, where } from "./review/change.js";
import { AllComments, OnChange, type Write } from "./review/comments.js";
import { Prompts } from "./review/rewind.js";
import { QueueRow, titleOf } from "./review/rows.js";
import { hasLeft, History, Stays, tell } from "./review/undone.js";

const HEIGHT = { group: 32, item: 34 } as const;

const GROUPS = [["file", "File"], ["directory", "Directory"], ["command", "Command"], ["session", "Session"]] as const;

/** The row that is looked at. A signal has its new value at once, also for a key that comes before the next render. */
const chosen = signal<string | undefined>(undefined);
const grouped = signal<By>(remembered("review", ["file", "directory", "command", "session"]));

/** How often the queue is asked for while a comment waits, in milliseconds: that it was received is no event. */
const WAITING = 5000;

/** Changes that are to be kept or undone together, by their keys. */
interface Asked {
  verb: "keep" | "undo";
  what: string;
  keys: ReadonlySet<string>;
}

export function Review() {
  const { value: found, error } = review.value;
  const by = grouped.value;
  const [text, setText] = useState("");
  const [later, setLater] = useState<ReadonlySet<string>>(new Set());
  const [turned, setTurned] = useState<ReadonlySet<string>>(new Set());
  const [stays, setStays] = useState<readonly UndoneFile[]>([]);
  const [busy, setBusy] = useState(false);
  const [asked, setAsked] = useState<Asked>();
  const [marks, setMarks] = useState<ReadonlyMap<string, boolean>>(new Map());
  const [isHidden, setHidden] = useState(remembered("viewed", ["shown", "hidden"]) === "hidden");
  const [commented, setCommented] = useState<string>();
  const field = useRef<HTMLInputElement>(null);
  const all = useMemo(() => itemsOf(found, authors, marks), [found, marks]);
  const viewed = useMemo(() => all.filter(({ isViewed }) => isViewed).length, [all]);
  const items = useMemo(() => filtered(isHidden ? all.filter(({ isViewed }) => !isViewed) : all, text, commands), [all, text, isHidden]);
  const comments = found?.comments ?? [];
  const waits = comments.some(isWaiting);
  useEffect(() => {
    if (!waits) return;
    const timer = setInterval(() => document.visibilityState === "visible" && review.poke(), WAITING);
    return () => clearInterval(timer);
  }, [waits]);
  const rows = useMemo(() => listed(items, by, later, turned), [items, by, later, turned]);
  const current = chosen.value;

  // The queue changes under the reader: the row that is looked at stays, or its successor takes its place.
  const before = useRef<readonly Row[]>([]);
  useLayoutEffect(() => {
    chosen.value = following(before.current, rows, current);
    before.current = rows;
  }, [rows]);

  const row = rows.find(({ key }) => key === current);
  const choose = (key: string) => void (chosen.value = key);
  const move = (by: 1 | -1) => {
    const at = rows.findIndex(({ key }) => key === chosen.peek());
    const others = by > 0 ? rows.slice(at + 1) : rows.slice(0, Math.max(0, at)).reverse();
    const next = others.find(isStop);
    if (next) choose(next.key);
  };
  const turn = (key: string) => setTurned(new Set(turned.has(key) ? [...turned].filter((one) => one !== key) : [...turned, key]));
  const act = async (work: () => Promise<void>) => {
    if (busy || connection.peek() !== "live") return;
    setBusy(true);
    try {
      await work();
    } catch (wrong) {
      const gone = wrong instanceof ApiError && wrong.code === "notFound";
      const path = gone && wrong.data.path ? `${shown(wrong.data.path)}: the` : "The";
      toast(gone ? `${path} change is no longer as it was listed, so nothing was done; the queue is up to date now.` : sentence(wrong), undefined, true);
    }
    setBusy(false);
    review.poke();
    undos.poke();
  };
  const hunks = (items: readonly Item[]) => items.map(({ ref, id }) => ({ ...named(ref), id }));
  const keepNow = (items: readonly Item[]) =>
    act(async () => {
      const { kept } = await call("review/keep", { hunks: hunks(items) });
      toast(`Kept ${count(kept, "change")}.`);
    });
  const undoNow = (items: readonly Item[]) =>
    act(async () => {
      const done = await call("review/undo", { hunks: hunks(items) });
      setStays(done.files.filter(hasLeft));
      tell(done);
    });
  const now = { keep: keepNow, undo: undoNow };
  // Several changes are not kept or undone unasked, and none that may be the user's is undone unasked.
  const does = (verb: Asked["verb"], what: string, items: readonly Item[]) => {
    const isOne = items.length === 1 && (verb === "keep" || !mayBeYours(rowOf(items[0]!)));
    if (isOne) void now[verb](items);
    else if (items.length > 0) setAsked({ verb, what, keys: new Set(items.map(({ key }) => key)) });
  };
  // The marks are shown before the daemon has answered, and go back if it refuses.
  const view = (items: readonly Item[]) => {
    const isViewed = !items.every((item) => item.isViewed);
    const wanted = items.filter((item) => item.isViewed !== isViewed);
    const set = (isViewed: boolean) => setMarks((marks) => new Map([...marks, ...wanted.map(({ key }) => [key, isViewed] as const)]));
    return act(async () => {
      set(isViewed);
      try {
        await call("review/view", { hunks: hunks(wanted), viewed: isViewed });
      } catch (wrong) {
        set(!isViewed);
        throw wrong;
      }
    });
  };
  const viewRow = (row: Row) => {
    const goesOn = row.kind === "item" && !row.item.isViewed && !isHidden;
    void view(itemsIn(row));
    if (goesOn) move(1);
  };
  const write: Write = (on, text) =>
    void act(async () => {
      await call("review/comment", { ...named(refOf(on)), id: on.id, text });
      toast(text === "" ? "The comment is withdrawn." : "The comment is stored. The change says when the agent has received it.");
    });
  const opens = useRef(false);
  const writeOn = (key: string) => {
    opens.current = commented !== key;
    setCommented(key);
  };
  useEffect(() => void (opens.current = false), [commented]);
  const leave = (items: readonly Item[]) => setLater(new Set([...later, ...items.map(({ key }) => key)]));
  const itemsIn = (row: Row) => (row.kind === "item" ? [row.item] : row.group.all);
  const nameOf = (row: Row) => `the changes of ${row.kind === "item" ? refShown(row.item.ref) : titleOf(row.group)}`;
  /** The outermost group that a row is in. */
  const around = (row: Row) => rows.slice(0, rows.indexOf(row) + 1).reverse().find((one) => one.kind === "group" && one.depth === 0) ?? row;

  // Before the browser paints: a key acts on what is shown, never on what was.
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      // The field for a comment is not there yet: what is typed is no answer.
      if (opens.current) return;
      const row = rows.find(({ key }) => key === chosen.peek());
      if (event.key === "j") move(1);
      else if (event.key === "k") move(-1);
      else if (event.key === "/") field.current?.focus();
      else if (!row) return;
      else if (event.key === "a") does("keep", nameOf(row), itemsIn(row));
      else if (event.key === "u") does("undo", nameOf(row), itemsIn(row));
      else if (event.key === "A") does("keep", nameOf(around(row)), itemsIn(around(row)));
      else if (event.key === "U") does("undo", nameOf(around(row)), itemsIn(around(row)));
      else if (event.key === "l") leave(itemsIn(row));
      else if (event.key === "v") viewRow(row);
      else if (event.key === "c" && row.kind === "item") writeOn(row.key);
      else if (event.key === "s" && row.kind === "group") turn(row.key);
      else if (event.key === "o" && row.kind === "item") go(address("file", row.item.ref));
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  });

  const notes = row && (
    <span class="notes">
      {row.kind === "item" && <button type="button" class="quiet" onClick={() => writeOn(row.key)}>Comment <kbd aria-hidden="true">c</kbd></button>}
      <button type="button" class="quiet" aria-pressed={itemsIn(row).every(({ isViewed }) => isViewed)} disabled={busy || connection.value !== "live"} onClick={() => viewRow(row)}>Viewed <kbd aria-hidden="true">v</kbd></button>
    </span>
  );
  const off = busy || connection.value !== "live";
  const what = text.trim() === "" ? "the changes of all agents" : `all changes listed for “${text.trim()}”`;
  return (
    <div class="review">
      <section class="queue" aria-labelledby="queue">
        <div class="head">
          <h1 id="queue"><Word is="review">To review</Word></h1>
          <Choices legend="Group by" value={by} options={GROUPS} onChange={(next) => { grouped.value = next; remember("review", next); }} />
        </div>
        {all.length > 0 && (
          <div class="filter">
            <input ref={field} type="search" value={text} placeholder="Search (/)" aria-label="Search in paths, lines, sessions and commands" onInput={(event) => setText(event.currentTarget.value)} onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()} />
            <button type="button" class="quiet" disabled={off || items.length === 0} onClick={() => does("keep", what, items)}>Keep all {items.length}</button>
            <button type="button" class="quiet" disabled={off || items.length === 0} onClick={() => does("undo", what, items)}>Undo all {items.length}</button>
            {(viewed > 0 || isHidden) && (
              <label class="viewed-filter">
                <input type="checkbox" checked={isHidden} onChange={({ currentTarget }) => { setHidden(currentTarget.checked); remember("viewed", currentTarget.checked ? "hidden" : "shown"); }} />
                <span>Hide viewed <span class="soft">{viewed} of {all.length}</span></span>
              </label>
            )}
          </div>
        )}
        {error && <p class="wrong" role="alert">{error}</p>}
        {found && all.length === 0 && (
          <Empty title="Nothing is left to review.">
            <p>Each change that an agent makes is listed here until you keep it, undo it or commit it. In a terminal, the same is</p>
            <p><Command text="touchmark review" /></p>
          </Empty>
        )}
        {all.length > 0 && items.length === 0 && (text.trim() === ""
          ? <Empty title="All changes are viewed."><p>They stay in the queue until you keep or undo them.</p></Empty>
          : <Empty title="No change has these words."><p>A change is found by its path, by its lines, by its session, and by its command&rsquo;s line and name.</p></Empty>)}
        {items.length > 0 && (
          <Virtual
            items={rows}
            heightOf={(row) => HEIGHT[row.kind]}
            keyOf={(row) => row.key}
            label="Changes"
            current={rows.findIndex((row) => row.key === current)}
            render={(row) => <QueueRow row={row} current={current} choose={choose} turn={turn} />}
          />
        )}
        {found?.more && <p class="soft foot">The first {all.length} changes are listed; further ones follow when these are done.</p>}
        {later.size > 0 && <p class="foot"><button type="button" class="quiet" onClick={() => setLater(new Set())}>Put {later.size} left for later back in line</button></p>}
        <div class="more">
          <Prompts stay={setStays} />
          <AllComments all={comments} off={off} write={write} />
          <History />
        </div>
      </section>
      {row && (
        <section class="hunk" aria-label={row.kind === "item" ? "The change" : "The group"}>
          {row.kind === "item" ? <ChangeHead item={row.item}>{notes}</ChangeHead> : <GroupHead group={row.group}>{notes}</GroupHead>}
          {stays.length > 0 && <Stays files={stays} close={() => setStays([])} />}
          {row.kind === "item" ? <Shown item={row.item} /> : <div class="whole"><FileList items={row.group.all} /></div>}
          {row.kind === "item" && <OnChange item={row.item} all={comments} open={commented === row.key} off={off} write={write} close={() => setCommented(undefined)} />}
          <div class="actions">
            <button type="button" class="primary" disabled={off} onClick={() => does("keep", nameOf(row), itemsIn(row))}>Keep{ofAll(row)} <kbd aria-hidden="true">a</kbd></button>
            <button type="button" disabled={off} onClick={() => does("undo", nameOf(row), itemsIn(row))}>Undo{ofAll(row)} <kbd aria-hidden="true">u</kbd></button>
            <button type="button" disabled={busy} onClick={() => leave(itemsIn(row))}>Later <kbd aria-hidden="true">l</kbd></button>
            {row.kind === "group" && <button type="button" class="quiet" onClick={() => turn(row.key)}>{row.isOpen ? "Fold" : "One by one"} <kbd aria-hidden="true">s</kbd></button>}
            <span class="spread" />
            <button type="button" class="quiet" onClick={() => move(-1)}><kbd aria-hidden="true">k</kbd> Previous</button>
            <button type="button" class="quiet" onClick={() => move(1)}>Next <kbd aria-hidden="true">j</kbd></button>
          </div>
        </section>
      )}
      {!row && stays.length > 0 && <section class="hunk" aria-label="What stays"><Stays files={stays} close={() => setStays([])} /></section>}
      {asked && <Ask {...asked} items={all.filter(({ key }) => asked.keys.has(key))} queue={all} off={off} act={(items) => void now[asked.verb](items)} close={() => setAsked(undefined)} />}
    </div>
  );
}

const ofAll = (row: Row) => (row.kind === "group" && row.group.all.length > 1 ? ` all ${row.group.all.length}` : "");

function ChangeHead({ item, children }: { item: Item; children: ComponentChildren }) {
  return (
    <div class="head">
      <h2><FileLink file={item.ref} /></h2>
      <p class="summary">
        <span>{where(item)}</span>
        {item.who.map((who) => <Badge key={who.key} who={who} named isLikely={mayBeYours(rowOf(item))} />)}
        {mayBeYours(rowOf(item)) && <span class="soft">it appeared while a command ran</span>}
        <span class="soft"><Ago time={item.time} /></span>
      </p>
      {children}
    </div>
  );
}

function GroupHead({ group, children }: { group: Group<Item>; children: ComponentChildren }) {
  const who = new Map<string, Who>(group.all.flatMap((item) => item.who.map((one) => [one.key, one] as const)));
  return (
    <div class="head">
      <h2>{titleOf(group)}</h2>
      <p class="summary">
        <span>{count(group.all.length, "change")} in {count(group.files, "file")}</span>
        <Counts {...sums(group.all)} />
        {[...who.values()].map((one) => <Badge key={one.key} who={one} named isLikely={group.all.some((item) => mayBeYours(rowOf(item)) && item.who.includes(one))} />)}
        <span class="soft"><Ago time={Math.max(...group.all.map(({ time }) => time))} /></span>
      </p>
      {children}
    </div>
  );
}
