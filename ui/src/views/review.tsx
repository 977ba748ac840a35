// Review: what agents changed, change by change, to keep or to undo.

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, call, sentence } from "../api.js";
import { now, review, undos } from "../live.js";
import { authors } from "../model/authors.js";
import { lineStarts } from "../model/lines.js";
import { type By, following, type Hunk, type Item, lineCount, queue, type Row, type Whole } from "../model/queue.js";
import { sides } from "../model/whole.js";
import { named, refShown, shown, shownText, split } from "../names.js";
import { Ago, Badge, Choices, Command, Counts, Empty, FileLink, Word } from "../parts/basics.js";
import { Diff } from "../parts/diff.js";
import { toast } from "../parts/toast.js";
import { Virtual } from "../parts/virtual.js";
import type { Undone, UndoneFile } from "../protocol.js";
import { address, go } from "../router.js";
import { connection } from "../stream.js";
import { ago, count } from "../times.js";
import { isTyping } from "../app.js";

const HEIGHT = { group: 32, item: 34 } as const;

export function Review() {
  const { value: found, error } = review.value;
  const [by, setBy] = useState<By>("file");
  const [later, setLater] = useState<ReadonlySet<string>>(new Set());
  const [current, setCurrent] = useChosen();
  const [stays, setStays] = useState<readonly UndoneFile[]>([]);
  const [busy, setBusy] = useState(false);
  // The changes to undo that may be the user's: whose they are is asked first.
  const [asked, setAsked] = useState<readonly Item[]>([]);
  const list = useMemo(() => queue(found, by, later, authors), [found, by, later]);

  // The queue changes under the reader: the change that is looked at stays, or its successor takes its place.
  const before = useRef<readonly Item[]>([]);
  useLayoutEffect(() => {
    const next = following(before.current, list.items, current);
    before.current = list.items;
    if (next !== current) setCurrent(next);
  }, [list]);

  const item = list.items.find((one) => one.key === current);
  const move = (by: number) => {
    const at = list.items.findIndex((one) => one.key === chosen.peek());
    const next = list.items[Math.max(0, Math.min(list.items.length - 1, at + by))];
    if (next) setCurrent(next.key);
  };
  const act = async (work: () => Promise<void>) => {
    if (busy || connection.peek() !== "live") return;
    setBusy(true);
    try {
      await work();
    } catch (wrong) {
      const gone = wrong instanceof ApiError && wrong.code === "notFound";
      toast(gone ? "The change is no longer as it was listed; the queue is up to date now." : sentence(wrong), undefined, true);
    }
    setBusy(false);
    review.poke();
    undos.poke();
  };
  const hunks = (items: readonly Item[]) => items.map(({ ref, id }) => ({ ...named(ref), id }));
  const keep = (items: readonly Item[]) =>
    act(async () => {
      const { kept } = await call("review/keep", { hunks: hunks(items) });
      toast(`Kept ${count(kept, "change")}.`);
    });
  const undo = (items: readonly Item[]) => (items.some(mayBeYours) ? setAsked(items) : undoNow(items));
  const undoNow = (items: readonly Item[]) =>
    act(async () => {
      const done = await call("review/undo", { hunks: hunks(items) });
      setStays(done.files.filter((file) => !WORKED.has(file.outcome) || file.outcome === "partly"));
      tell(done);
    });
  const mine = (items: readonly Item[]) =>
    act(async () => {
      for (const one of items) {
        if (one.kind === "hunk") await call("claim", { paths: [one.ref], lines: one.hunk.lines });
      }
      toast(`Recorded as yours: ${count(items.length, "change")}.`);
    });
  const leave = (one: Item) => setLater(new Set([...later, one.key]));

  // Before the browser paints: a key acts on what is shown, never on what was.
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const item = list.items.find((one) => one.key === chosen.peek());
      if (event.key === "j") move(1);
      else if (event.key === "k") move(-1);
      else if (!item) return;
      else if (event.key === "a") void keep([item]);
      else if (event.key === "u") void undo([item]);
      else if (event.key === "l") leave(item);
      else if (event.key === "o") go(address("file", item.ref));
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  });

  const group = item ? list.items.filter((one) => one.ref === item.ref && !later.has(one.key)) : [];
  const off = busy || connection.value !== "live";
  return (
    <div class="review">
      <section class="queue" aria-labelledby="queue">
        <div class="head">
          <h1 id="queue"><Word is="review">To review</Word></h1>
          <Choices legend="Group by" value={by} options={[["file", "By file"], ["session", "By session"]]} onChange={setBy} />
        </div>
        {error && <p class="wrong" role="alert">{error}</p>}
        {found && list.items.length === 0 ? (
          <Empty title="Nothing is left to review.">
            <p>Each change that an agent makes is listed here until you keep it, undo it or commit it. In a terminal, the same is</p>
            <p><Command text="touchmark review" /></p>
          </Empty>
        ) : (
          <Virtual
            items={list.rows}
            heightOf={(row) => HEIGHT[row.kind]}
            keyOf={(row) => row.key}
            label="Changes"
            current={list.rows.findIndex((row) => row.kind === "item" && row.key === current)}
            render={(row) => <QueueRow row={row} current={current} by={by} choose={setCurrent} />}
          />
        )}
        {found?.more && <p class="soft foot">The first {list.items.length} changes are listed; further ones follow when these are done.</p>}
        {later.size > 0 && <p class="foot"><button type="button" class="quiet" onClick={() => setLater(new Set())}>Put {later.size} left for later back in line</button></p>}
        <History />
      </section>
      {item && (
        <section class="hunk" aria-label="The change">
          <div class="head">
            <h2><FileLink file={item.ref} /></h2>
            <p class="summary">
              <span>{where(item)}</span>
              {item.who.map((who) => <Badge key={who.key} who={who} named />)}
              {mayBeYours(item) && <span class="soft">or you: it appeared while a command ran</span>}
              <span class="soft"><Ago time={item.time} /></span>
            </p>
          </div>
          {stays.length > 0 && <Stays files={stays} close={() => setStays([])} />}
          {asked.length > 0 && (
            <div class="stays" role="alert">
              <p>This appeared while a command of the agent ran. Did the command write it, or you?</p>
              <button type="button" onClick={() => { setAsked([]); void undoNow(asked); }}>The command: undo it</button>
              <button type="button" onClick={() => { setAsked([]); void mine(asked); }}>I did: it is mine</button>
              <button type="button" class="quiet" onClick={() => setAsked([])}>Leave it</button>
            </div>
          )}
          {item.kind === "hunk" ? <HunkDiff item={item} /> : <Sides item={item} />}
          <div class="actions">
            <button type="button" class="primary" disabled={off} onClick={() => void keep([item])}>Keep <kbd aria-hidden="true">a</kbd></button>
            <button type="button" disabled={off} onClick={() => void undo([item])}>Undo <kbd aria-hidden="true">u</kbd></button>
            <button type="button" disabled={busy} onClick={() => leave(item)}>Later <kbd aria-hidden="true">l</kbd></button>
            {group.length > 1 && <button type="button" class="quiet" disabled={off} onClick={() => void keep(group)}>Keep all {group.length} of this file</button>}
            <span class="spread" />
            <button type="button" class="quiet" onClick={() => move(-1)}><kbd aria-hidden="true">k</kbd> Previous</button>
            <button type="button" class="quiet" onClick={() => move(1)}>Next <kbd aria-hidden="true">j</kbd></button>
          </div>
        </section>
      )}
      {!item && stays.length > 0 && <section class="hunk" aria-label="What stays"><Stays files={stays} close={() => setStays([])} /></section>}
    </div>
  );
}

/** The change that is looked at. A signal has its new value at once, also for a key that comes before the next render. */
const chosen = signal<string | undefined>(undefined);
const useChosen = () => [chosen.value, (key: string | undefined) => void (chosen.value = key)] as const;

/** Whether lines of a change may be the user's: they appeared while a command ran. */
const mayBeYours = (item: Item) => item.kind === "hunk" && item.hunk.likely === true && item.hunk.after !== "";

const WORKED: ReadonlySet<string> = new Set(["undone", "partly", "deleted", "restored", "renamed", "unchanged"]);

/** Says what an undo did, with a way back. */
function tell(done: Undone): void {
  const { undo, files } = done;
  const worked = files.filter((file) => WORKED.has(file.outcome) && file.outcome !== "unchanged");
  if (!undo || worked.length === 0) {
    toast(files.some((file) => file.outcome === "changed") ? "The file was saved in that moment; nothing was undone. Try again." : "Nothing was undone; see what stays, and why.", undefined, true);
    return;
  }
  const changes = worked.reduce((sum, file) => sum + Math.max(1, file.hunks), 0);
  toast(`Undid ${count(changes, "change")} of ${worked.length === 1 ? shown(worked[0]!.path) : count(worked.length, "file")}.`, { text: "Take back (z)", run: () => void redo(undo) });
}

async function redo(undo: string): Promise<void> {
  try {
    const done = await call("redo", { undo });
    const files = done.files.filter((file) => file.outcome !== "unchanged");
    const stuck = files.filter((file) => !WORKED.has(file.outcome));
    toast(stuck.length > 0 ? `Not all came back: ${stuck.map((file) => `${shown(file.path)}: ${file.cause ?? file.outcome}`).join("; ")}` : `Took back ${undo}: ${count(files.length, "file")} as before the undo.`, undefined, stuck.length > 0);
  } catch (wrong) {
    toast(sentence(wrong), undefined, true);
  }
  review.poke();
  undos.poke();
}

function where(item: Item): string {
  if (item.kind === "whole") return item.what;
  const { hunk } = item;
  if (hunk.created) return "created the file";
  if (hunk.deleted) return "deleted the file";
  const { start, end } = hunk.lines;
  if (hunk.after === "") return `removed after line ${start}`;
  return start === end ? `line ${start}` : `lines ${start}–${end}`;
}

function QueueRow({ row, current, by, choose }: { row: Row; current: string | undefined; by: By; choose: (key: string) => void }) {
  if (row.kind === "group") {
    const { directory, name } = split(row.ref ? refShown(row.ref) : "");
    return (
      <h2 class="group" title={row.ref && refShown(row.ref)}>
        {row.who && <Badge who={row.who} />}
        {row.ref ? <span class="path"><span class="dir"><bdi>{directory}</bdi></span><span class="base">{name}</span></span> : row.title}
        <span class="soft">{row.title.endsWith("(later)") ? "later, " : ""}{row.count}</span>
      </h2>
    );
  }
  const { item } = row;
  const { where, text, note } = item.kind === "hunk" ? hunkRow(item) : wholeRow(item);
  return (
    <button type="button" class="hunk-row" aria-current={row.key === current ? "true" : undefined} onClick={() => choose(row.key)}>
      <span class="hunk-where soft">{where}</span>
      <code class="hunk-text">{by === "session" ? `${split(refShown(item.ref)).name}: ` : ""}{text}</code>
      {note}
      {by === "file" && item.who.map((who) => <Badge key={who.key} who={who} />)}
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

/** What a change without lines altered, without it and with it. */
function Sides({ item }: { item: Whole }) {
  const rows = sides(item.file);
  if (rows.length === 0) return <div class="whole"><p class="soft">The file was a symlink before, so its content is kept or undone as a whole.</p></div>;
  return (
    <div class="whole" tabIndex={0} role="group" aria-label="What changed">
      <table>
        <thead>
          <tr><td /><th scope="col">Without the change</th><th scope="col">With the change</th></tr>
        </thead>
        <tbody>
          {rows.map(({ name, before, after }) => (
            <tr key={name}><th scope="row">{name}</th><td><code class="minus">{before || "–"}</code></td><td><code class="plus">{after || "–"}</code></td></tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function HunkDiff({ item }: { item: Hunk }) {
  const { hunk, ref } = item;
  const [around, setAround] = useState<{ key: string; before: string; after: string; lines: number }>();
  useEffect(() => {
    let over = false;
    surroundings(item).then((found) => !over && setAround({ key: item.key, ...found }));
    return () => void (over = true);
  }, [item.key, hunk.lines.start, hunk.before, hunk.after]);
  // The texts are the same for the same id, also where the list was read again.
  const what = useMemo(() => {
    if (around?.key !== item.key) return undefined;
    const start = hunk.lines.start + (hunk.after === "" && !hunk.deleted ? 1 : 0) - around.lines;
    const text = (own: string) => (own === "" && around.lines === 0 && around.after === "" ? "" : (around.before + own + around.after).replace(/\n$/, ""));
    return {
      file: ref,
      a: { text: text(hunk.before), label: "Without the change", start },
      b: { text: text(hunk.after), label: "With the change", start },
      mode: "inline" as const,
      folded: false,
    };
  }, [item.key, around]);
  return what ? <Diff shown={what} class="small" /> : <div class="diff" />;
}

/** Lines that are shown above and below a change. */
const CONTEXT = 4;
/** The newest file whose content was asked for. */
let looked: { ref: string; at: number; content: Promise<string | undefined> } | undefined;

/** The lines around a hunk; none where the file is of another moment than the list. */
async function surroundings({ hunk, ref }: Hunk): Promise<{ before: string; after: string; lines: number }> {
  const none = { before: "", after: "", lines: 0 };
  if (hunk.created || hunk.deleted) return none;
  const at = review.peek().at ?? 0;
  if (looked?.ref !== ref || looked.at !== at) {
    const content = call("file/content", named(ref)).then((found) => (found.encoding === "utf8" ? found.text : undefined), () => undefined);
    looked = { ref, at, content };
  }
  const text = await looked.content;
  if (text === undefined) return none;
  const starts = lineStarts(text);
  const first = hunk.after === "" ? hunk.lines.start + 1 : hunk.lines.start;
  const from = Math.min(starts[first - 1] ?? text.length, text.length);
  if (!text.startsWith(hunk.after, from)) return none;
  const to = from + hunk.after.length;
  const above = Math.max(1, first - CONTEXT);
  const below = first + lineCount(hunk.after) - 1 + CONTEXT;
  return { before: text.slice(starts[above - 1] ?? from, from), after: text.slice(to, Math.max(to, Math.min(starts[below] ?? text.length, text.length))), lines: first - above };
}

const OUTCOMES: Record<string, string> = {
  conflict: "stays, since the same lines have changed afterwards",
  notKept: "stays, since the contents that it needs are no longer stored",
  changed: "stays, since the file was saved in that moment; try again",
  failed: "could not be written",
  partly: "is undone in part",
  left: "stays",
};

function Stays({ files, close }: { files: readonly UndoneFile[]; close: () => void }) {
  return (
    <div class="stays" role="alert">
      {files.map((file) => (
        <div key={file.path}>
          <p><strong>{shown(file.path)}</strong> {OUTCOMES[file.outcome] ?? file.outcome}{file.cause ? `: ${shown(file.cause)}` : "."}</p>
          {file.left?.map((left) => <p class="soft" key={left.why}>{left.lines ? `Lines ${left.lines.start}–${left.lines.end}: ` : ""}{shown(left.why)}.</p>)}
          {file.conflicts?.map((conflict) => (
            <div key={`${conflict.lines.start} ${conflict.lines.end}`}>
              <p class="soft">
                <Word is="conflict">Conflict</Word> in lines {conflict.lines.start}–{conflict.lines.end}, changed afterwards by <Badge who={authors.of(conflict.by)} named />. Before the agent&rsquo;s change there was:
              </p>
              <pre tabIndex={0}>{conflict.before === "" ? "(nothing)" : shownText(conflict.before)}</pre>
            </div>
          ))}
        </div>
      ))}
      <button type="button" class="quiet" onClick={close}>Close</button>
    </div>
  );
}

function History() {
  const found = undos.value.value;
  useEffect(() => undos.poke(), []);
  if (!found || found.length === 0) return null;
  return (
    <details class="history">
      <summary>What was undone <span class="soft">{found.length}</span></summary>
      <ul tabIndex={0} aria-label="Undos, the newest first">
        {found.slice(0, 50).map((row) => (
          <li key={row.undo}>
            <span class="soft">{ago(row.time, now.value)}</span>
            <span class="what" title={row.paths.map(shown).join("\n")}>{row.redoOf ? `took back ${row.redoOf}` : shown(row.what)}</span>
            <button type="button" class="quiet" onClick={() => void redo(row.undo)}>Take back</button>
          </li>
        ))}
      </ul>
    </details>
  );
}
