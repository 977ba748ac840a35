// Now: which sessions there are, what they hold and what of it is stale, and
// what is happening.

import { useEffect, useMemo, useState } from "preact/hooks";
import { copies, feedRevision, fold, losses, now, ran, review, sessions, status } from "../live.js";
import { authors } from "../model/authors.js";
import { commandShown } from "../model/doubts.js";
import type { Entry } from "../model/fold.js";
import { type Deed, deeds, witnessed } from "../model/now.js";
import { waiting } from "../model/queue.js";
import { refOf, refShown, shown, split } from "../names.js";
import { Ago, At, Badge, Choices, Command, Counts, Empty, FileLink, Word } from "../parts/basics.js";
import { spoken } from "../parts/toast.js";
import { Virtual } from "../parts/virtual.js";
import type { CommandGap, FileState, SessionRow, SessionWitnessed } from "../protocol.js";
import { clockTime, count } from "../times.js";

type Row =
  | { kind: "session"; key: string; row: SessionRow; open: boolean }
  | { kind: "witness"; key: string; seen: SessionWitnessed; why: string; lines: number }
  | { kind: "copy"; key: string; session: SessionRow; file: FileState }
  | { kind: "note"; key: string; text: string }
  | { kind: "ended"; key: string; count: number };

const HEIGHT = { session: 58, copy: 26, note: 26, ended: 44 } as const;
const heightOf = (row: Row) => (row.kind === "witness" ? 26 + 19 * row.lines : HEIGHT[row.kind]);
/** Characters of a gap's reason that fit into a line on a narrow screen. */
const LINE = 44;
/** Stale copies that are shown of a session that is not opened. */
const SOME = 4;

export function Now() {
  return (
    <div class="now">
      <Sessions />
      <Feed />
    </div>
  );
}

function Sessions() {
  const { value: rows, error } = sessions.value;
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [ended, setEnded] = useState(false);
  const held = useCopies(rows, opened);
  const doing = useDeeds();
  const seenOf = status.value.value?.witnessed ?? [];
  const list = useMemo((): Row[] => {
    const all: Row[] = [];
    const order = [...(rows ?? [])].sort((one, other) => Number(other.stale > 0) - Number(one.stale > 0) || other.lastActive - one.lastActive);
    const add = (row: SessionRow) => {
      const open = opened.has(row.session);
      all.push({ kind: "session", key: row.session, row, open });
      const seen = seenOf.find(({ session }) => session === row.session);
      if (seen) {
        const why = seen.gap ? gapOf(seen.gap) : "";
        all.push({ kind: "witness", key: `${row.session}\0witness`, seen, why, lines: why === "" ? 0 : open ? Math.ceil((why.length + 20) / LINE) : 2 });
      }
      if (!open && row.stale === 0) return;
      const files = held.get(row.session) ?? [];
      const shownOnes = open ? files : files.filter((file) => file.state !== "fresh").slice(0, SOME);
      for (const file of shownOnes) all.push({ kind: "copy", key: `${row.session}\0${refOf(file)}`, session: row, file });
      if (!open && row.stale > SOME) all.push({ kind: "note", key: `${row.session}\0more`, text: `and ${row.stale - SOME} more` });
      if (open && files.length === 0) all.push({ kind: "note", key: `${row.session}\0none`, text: "holds no file" });
    };
    const closed = order.filter((row) => !row.open);
    for (const row of order) if (row.open) add(row);
    if (closed.length > 0) all.push({ kind: "ended", key: "ended", count: closed.length });
    if (ended) closed.forEach(add);
    return all;
  }, [rows, held, opened, ended, seenOf, ran.value.value]);
  const toggle = (id: string) => setOpened(new Set(opened.has(id) ? [...opened].filter((one) => one !== id) : [...opened, id]));

  return (
    <section class="sessions" aria-labelledby="sessions">
      <div class="head">
        <h1 id="sessions">Sessions</h1>
        <Summary rows={rows} />
      </div>
      <Losses />
      {error && <p class="wrong" role="alert">{error}</p>}
      {rows?.length === 0 ? (
        <Empty title="No agent has been here yet.">
          <p>Connect the agents that you use, then work with one of them in this directory. Each conversation becomes a row here.</p>
          <p><Command text="touchmark setup" /></p>
          <p>Or see it at work, with no agent at all:</p>
          <p><Command text="touchmark demo" /></p>
        </Empty>
      ) : (
        <Virtual
          items={list}
          heightOf={heightOf}
          keyOf={(row) => row.key}
          label="Sessions"
          render={(row) => {
            switch (row.kind) {
              case "session": return <SessionLine row={row.row} deed={doing.get(authors.agent(row.row.session, row.row.label).key)} open={row.open} toggle={() => toggle(row.row.session)} />;
              case "witness": return <Witness {...row} />;
              case "copy": return <Copy file={row.file} session={row.session} />;
              case "note": return <p class="copy soft">{row.text}</p>;
              case "ended": return <button type="button" class="quiet fold" aria-expanded={ended} onClick={() => setEnded(!ended)}>{count(row.count, "ended session")}</button>;
            }
          }}
        />
      )}
    </section>
  );
}

/** The copies of the sessions that are opened, or that have stale ones; asked for again when a session's row changes. */
function useCopies(rows: readonly SessionRow[] | undefined, opened: ReadonlySet<string>): ReadonlyMap<string, readonly FileState[]> {
  const [held, setHeld] = useState<ReadonlyMap<string, readonly FileState[]>>(new Map());
  const asked = useMemo(() => new Map<string, string>(), []);
  useEffect(() => {
    for (const row of rows ?? []) {
      const open = opened.has(row.session);
      if (!open && row.stale === 0) continue;
      const state = `${open} ${row.stale} ${row.reads} ${row.edits} ${row.modified}`;
      if (asked.get(row.session) === state) continue;
      asked.set(row.session, state);
      copies(row.session, open).then(
        ({ files }) => setHeld((before) => new Map(before).set(row.session, files)),
        () => asked.delete(row.session),
      );
    }
  }, [rows, opened]);
  return held;
}

/** What each session does now. The commands that run are asked for while this is looked at. */
function useDeeds(): ReadonlyMap<string, Deed> {
  const revision = feedRevision.value;
  const commands = ran.value.value ?? [];
  useEffect(() => now.subscribe(() => ran.poke()), []);
  return useMemo(() => deeds(fold.entries, commands, VERBS, (session) => authors.agent(session).key), [revision, commands]);
}

/** What was lost in the last day, and can be brought back. */
function Losses() {
  const { overwrote = [], kept = 0 } = losses.value.value ?? {};
  if (overwrote.length === 0 && kept === 0) return null;
  return (
    <ul class="losses" aria-label="Lost">
      {overwrote.map((row) => {
        const who = row.session == null ? undefined : authors.agent(row.session, row.label ?? undefined);
        return row.path != null && (
          <li key={row.clock}>
            <span class="warn strong">Lost:</span>
            <FileLink file={refOf({ ...row, path: row.path })} query={{ from: row.lost ?? undefined, to: "now" }} />
            <span class="soft">overwritten unseen by</span> {who && <Badge who={who} />} <span class="soft"><Ago time={row.time} /></span>
          </li>
        );
      })}
      {kept > 0 && <li><span class="warn strong">Kept:</span> {count(kept, "content")} <Command text="touchmark recovered list" /></li>}
    </ul>
  );
}

function Summary({ rows }: { rows: readonly SessionRow[] | undefined }) {
  const open = rows?.filter((row) => row.open) ?? [];
  const stale = open.reduce((sum, row) => sum + row.stale, 0);
  const toReview = waiting(review.value.value);
  const less = status.value.value?.degraded ?? [];
  return (
    <p class="summary">
      {rows && <span>{open.length} open</span>}
      {rows && <span class={stale > 0 ? "warn" : ""}><Word is="stale">{count(stale, "stale copy", "stale copies")}</Word></span>}
      {toReview > 0 && <a href="#/review">{count(toReview, "change")} to review</a>}
      {less.length > 0 && <span class="warn" title={less.map((one) => shown(one.cause)).join("\n")}>sees less than it should: {shown(less[0]!.cause)}</span>}
    </p>
  );
}

/** A deed in words: `edits cart.js`. */
function said({ verb, ref, files, command }: Deed): string {
  if (command !== undefined) return `${verb} ${shown(command)}`;
  return `${verb} ${ref === undefined ? count(files, "file") : split(refShown(ref)).name}`;
}

function SessionLine({ row, deed, open, toggle }: { row: SessionRow; deed: Deed | undefined; open: boolean; toggle: () => void }) {
  const who = authors.agent(row.session, row.label);
  const program = row.agent ? [row.agent.name, row.agent.version].filter(Boolean).join(" ") : "";
  return (
    <button type="button" class={`session ${row.open ? "" : "ended"}`} aria-expanded={open} onClick={toggle}>
      <Badge who={who} />
      <span class="session-what">
        <span class="session-name" aria-hidden="true">{who.name}</span>
        <span class="session-about soft">{[row.open && deed && said(deed), shown(program), row.model && shown(row.model), row.parent ? "sub-agent" : ""].filter(Boolean).join(" · ") || "no program named"}</span>
      </span>
      <span class="session-numbers">
        {row.stale > 0 ? <span class="warn strong">{row.stale} stale</span> : <span class="soft">all fresh</span>}
        <span class="soft">{count(row.reads, "read")}, {count(row.edits, "edit")} · <Ago time={row.lastActive} /></span>
      </span>
    </button>
  );
}

/** Returns why a witness has not seen all writes of a command, and which command it was. */
function gapOf({ command, why }: CommandGap): string {
  const row = ran.value.value?.find((one) => one.command === command);
  const label = row?.label?.replace(/^(.{60}).+$/s, "$1…");
  return `${shown(why)}; it was ${shown(commandShown(command, row && { ...row, label: label ?? null }))}`;
}

/** What a witness has seen of a session's commands, and the newest gap. */
function Witness({ seen, why, lines }: { seen: SessionWitnessed; why: string; lines: number }) {
  return (
    <div class="witness soft">
      <p><Word is="witness">Witnessed</Word> since <At time={seen.since} />: {witnessed(seen)}</p>
      {seen.gap && <p class="gap" style={{ WebkitLineClamp: String(lines) }} title={why}>Newest gap, <At time={seen.gap.at} />: {why}</p>}
    </div>
  );
}

const STATES: Record<FileState["state"], string> = {
  fresh: "fresh", stale: "stale", deleted: "deleted", unread: "never read", unreadable: "cannot be read", unknown: "not known what it saw",
};

function Copy({ file, session }: { file: FileState; session: SessionRow }) {
  const stale = file.state !== "fresh";
  const by = file.changedBy ?? [];
  return (
    <div class="copy">
      <span class={`dot ${file.state}`} aria-hidden="true" />
      <FileLink file={refOf(file)} query={stale && file.state !== "deleted" ? { from: `seen:${session.label ?? session.session}`, to: "now" } : {}} />
      <span class={`copy-state ${stale ? "warn" : "soft"}`}>
        {STATES[file.state]}
        {file.unsaved ? ", unsaved changes" : ""}
      </span>
      {by.length > 0 && <span class="by"><span class="soft">changed by</span> {by.slice(0, 3).map((author) => { const who = authors.of(author); return <Badge key={who.key} who={who} />; })}</span>}
      {file.since != null && <span class="soft when"><Ago time={file.since} /></span>}
    </div>
  );
}

type Shown = "all" | "changes";

const VERBS: Record<Entry["verb"], string> = {
  created: "created", changed: "changed", deleted: "deleted", renamed: "renamed", read: "read", opened: "opened a session", closed: "closed its session",
  forgotten: "was forgotten", stale: "holds a stale copy of", kept: "kept lost bytes of", aborted: "gave up an edit of", lapsed: "let an edit lapse of",
  ran: "ran", undid: "undid", redid: "redid", degraded: "sees less", overflow: "compares everything", corrected: "is the author of",
};

function Feed() {
  const [which, setWhich] = useState<Shown>("all");
  const [opened, setOpened] = useState<number>();
  const revision = feedRevision.value;
  const list = useMemo(() => {
    const wanted = which === "all" ? fold.entries : fold.entries.filter((entry) => (entry.events > 0 || entry.verb === "undid" || entry.verb === "redid") && entry.verb !== "read" && entry.verb !== "opened" && entry.verb !== "closed");
    return [...wanted].reverse();
  }, [revision, which]);
  useSpoken();
  return (
    <section class="feed" aria-labelledby="feed">
      <div class="head">
        <h2 id="feed">What happens</h2>
        <Choices legend="Which events" value={which} options={[["all", "All"], ["changes", "Changes"]]} onChange={setWhich} />
      </div>
      {list.length === 0 ? (
        <Empty title="Nothing has happened yet.">
          <p>Save a file that an agent has read, or let an agent edit one: it appears here at once. In a terminal, the same is</p>
          <p><Command text="touchmark watch" /></p>
        </Empty>
      ) : (
        <Virtual
          items={list}
          revision={`${revision} ${opened}`}
          heightOf={(entry) => (entry.id === opened ? 34 + 22 * Math.min(entry.refs.length, 12) : 34)}
          keyOf={(entry) => entry.id}
          label="What happens, the newest first"
          render={(entry) => <FeedLine entry={entry} open={entry.id === opened} toggle={() => setOpened(entry.id === opened ? undefined : entry.id)} />}
        />
      )}
    </section>
  );
}

function FeedLine({ entry, open, toggle }: { entry: Entry; open: boolean; toggle: () => void }) {
  const { refs, files, command, staleFor } = entry;
  const today = now.value - entry.time < 86_400_000;
  const note = [entry.note, files > 1 ? undefined : command?.text && `by ${command.text}`].filter(Boolean).join(", ");
  const single = files === 1 && refs[0] !== undefined;
  return (
    <div class={`entry ${entry.verb}`}>
      <div class="line">
        <time class="soft time" dateTime={new Date(entry.time).toISOString()}>{today ? <>{clockTime(entry.time, false)}<span class="seconds">{clockTime(entry.time).slice(5)}</span></> : <Ago time={entry.time} />}</time>
        <Badge who={entry.who} isLikely={entry.isLikely === true} />
        <span class="what">
          {command?.text && files > 1 && <code class="ran" title={command.text}>{command.text}</code>}
          <span class="verb">{VERBS[entry.verb]}</span>
          {single && <FileLink file={refs[0]!} />}
          {files > 1 && <button type="button" class="burst" aria-expanded={open} onClick={toggle}>{count(files, "file")}</button>}
          {note && <span class="soft note" title={note}>{note}</span>}
        </span>
        <Counts added={entry.added} removed={entry.removed} />
        {staleFor.size > 0 && (
          <span class="stale-for" title={`Stale now: ${[...staleFor.values()].map((who) => who.name).join(", ")}`}>
            <span class="warn">stale for</span> {[...staleFor.values()].slice(0, 2).map((who) => <Badge key={who.key} who={who} />)}
            {staleFor.size > 2 && <span class="soft">+{staleFor.size - 2}</span>}
            <span class="warn short">{staleFor.size} stale</span>
          </span>
        )}
      </div>
      {open && (
        <ul class="inside" tabIndex={0} aria-label="Files">
          {refs.map((ref) => <li key={ref}><FileLink file={ref} /></li>)}
          {files > refs.length && <li class="soft">and {files - refs.length} more</li>}
        </ul>
      )}
    </div>
  );
}

/** Reads out, now and then, how much has happened: not each event. */
function useSpoken(): void {
  useEffect(() => {
    let heard = fold.entries.at(-1)?.id ?? 0;
    const timer = setInterval(() => {
      const newest = fold.entries.at(-1)?.id ?? 0;
      const fresh = fold.entries.filter((entry) => entry.id > heard && entry.verb !== "read");
      heard = newest;
      if (fresh.length > 0) spoken.value = `${count(fresh.length, "new entry", "new entries")}; the newest: ${fresh.at(-1)!.who.name} ${VERBS[fresh.at(-1)!.verb]} ${fresh.at(-1)!.files === 1 ? shown(fresh.at(-1)!.refs[0] ?? "") : count(fresh.at(-1)!.files, "file")}`;
    }, 10_000);
    return () => clearInterval(timer);
  }, []);
}
