// A file: its versions as a timeline with a lane for each author, the
// difference between two of them, and a way back to any of them.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, call, sentence } from "../api.js";
import { touched } from "../live.js";
import { authors, isLikely } from "../model/authors.js";
import { type Span, spans } from "../model/lines.js";
import { evidence, type Stop, timeline, type Timeline } from "../model/timeline.js";
import { named, type Ref, refShown, shown, split } from "../names.js";
import { Badge, Choices, Command, Counts, Dialog, Empty, Word } from "../parts/basics.js";
import { Diff } from "../parts/diff.js";
import { toast } from "../parts/toast.js";
import type { ContentAt, Version } from "../protocol.js";
import { address, go, route } from "../router.js";
import { again, connection } from "../stream.js";
import { bytes, count, exact } from "../times.js";

/** Versions that are loaded at a time. */
const PAGE = 500;

interface History {
  rows: Version[];
  more: string | undefined;
  /** The baseline is the last row. */
  whole: boolean;
}

export function FileView({ file }: { file: Ref }) {
  const [history, setHistory] = useState<History>();
  const [error, setError] = useState<string>();
  const [reload, setReload] = useState(0);
  useEffect(() => touched.subscribe((refs) => void (refs.has(file) && setReload((times) => times + 1))), [file]);
  useEffect(() => {
    let over = false;
    call("file/history", { ...named(file), limit: PAGE }).then(
      ({ versions, more }) => {
        if (over) return;
        setHistory({ rows: versions, more: more ?? undefined, whole: more == null });
        setError(undefined);
      },
      (wrong: unknown) => void (!over && !(wrong instanceof ApiError && wrong.isGone) && setError(sentence(wrong))),
    );
    return () => void (over = true);
  }, [file, reload, again.value]);
  const line = useMemo(() => history && timeline(history.rows, authors, history.whole), [history]);
  const older = async () => {
    if (!history?.more) return;
    const { versions, more } = await call("file/history", { ...named(file), limit: PAGE, before: history.more });
    setHistory({ rows: [...history.rows, ...versions], more: more ?? undefined, whole: more == null });
  };
  const { directory, name } = split(refShown(file));
  return (
    <div class="file">
      <div class="head">
        <p class="crumb"><a href="#/files">Files</a> <span class="soft">/ {directory}</span></p>
        <h1>{name}</h1>
        {line && <p class="summary"><span>{count(line.stops.length, "version")}</span>{line.lanes.map((who) => <Badge key={who.key} who={who} named />)}</p>}
      </div>
      {error && (
        <Empty title="This file has no history here.">
          <p class="wrong" role="alert">{error}</p>
        </Empty>
      )}
      {line && line.stops.length === 0 && !error && (
        <Empty title="No version of this file is on record.">
          <p>touchmark records a file from when an agent first reads or mentions it:</p>
          <p><Command text={`touchmark call file/readText '${JSON.stringify({ session: "me", ...named(file) })}'`} /></p>
        </Empty>
      )}
      {line && line.stops.length > 0 && <Versions file={file} line={line} older={history?.more ? () => void older() : undefined} />}
    </div>
  );
}

type Mode = "side" | "inline";

function Versions({ file, line, older }: { file: Ref; line: Timeline; older: (() => void) | undefined }) {
  const { query } = route.value;
  const [mode, setMode] = useState<Mode>(matchMedia("(max-width: 900px)").matches ? "inline" : "side");
  const [whole, setWhole] = useState(false);
  const { stops } = line;
  const last = stops.length - 1;
  const to = query.get("to");
  const from = query.get("from");
  const found = to === null || to === "now" ? last : stops.findIndex((stop) => stop.version.clock === to);
  const at = found < 0 ? last : found;
  const stop = stops[at]!;
  // Compared with the version before it, unless the address names another one.
  const base = from ?? (at > 0 ? stops[at - 1]!.version.clock : undefined);
  const choose = (index: number, keepFrom = false) =>
    go(address("file", file, { to: index === last ? undefined : stops[index]!.version.clock, from: keepFrom ? (from ?? undefined) : undefined }), true);
  const against = from === null ? "previous" : from === stops[0]!.version.clock ? "first" : "other";
  return (
    <>
      <Lanes line={line} at={at} choose={choose} />
      <div class="slider">
        {older && <button type="button" class="quiet" onClick={older}>Older</button>}
        <button type="button" class="quiet step" disabled={at === 0} onClick={() => choose(at - 1)} aria-label="Older version">‹</button>
        <input type="range" min={0} max={last} value={at} disabled={last === 0} aria-label="Version" aria-valuetext={`${at + 1} of ${stops.length}: ${stop.who.name}, ${exact(stop.version.time)}`} onInput={(event) => choose(Number(event.currentTarget.value))} />
        <button type="button" class="quiet step" disabled={at === last} onClick={() => choose(at + 1)} aria-label="Newer version">›</button>
      </div>
      <div class="version">
        <About stop={stop} newest={at === last} />
      </div>
      <div class="version">
        <Choices
          legend="Compare with"
          value={against}
          options={[["previous", "Previous"], ["first", "First"], ...(against === "other" ? [["other", shown(from ?? "")] as const] : [])]}
          onChange={(value) => go(address("file", file, { to: to ?? undefined, from: value === "first" ? stops[0]!.version.clock : undefined }), true)}
        />
        <Choices legend="Layout" value={mode} options={[["side", "Side by side"], ["inline", "Inline"]]} onChange={setMode} />
        <Choices legend="Lines" value={whole ? "all" : "changes"} options={[["changes", "Changes"], ["all", "Whole file"]]} onChange={(value) => setWhole(value === "all")} />
        <span class="spread" />
        <Restore file={file} stop={stop} newest={at === last} />
      </div>
      <Compare file={file} from={base} to={to === "now" ? "now" : stop.version.clock} gone={stop.version.hash == null} mode={mode} folded={!whole} />
    </>
  );
}

function About({ stop, newest }: { stop: Stop; newest: boolean }) {
  const { version, who, baseline, corrected } = stop;
  return (
    <p class="about">
      <Badge who={who} named isLikely={!baseline && isLikely(version)} />
      <span>{baseline ? "as first seen" : version.kind}{version.from ? ` from ${shown(version.from)}` : ""}{newest ? ", the newest" : ""}</span>
      <time class="soft" dateTime={new Date(version.time).toISOString()}>{exact(version.time)}</time>
      {!baseline && <span class="soft">{evidence(version)}{corrected ? "; another author was named first" : ""}</span>}
      {version.overwritten && <span class="warn"><Word is="overwritten">replaced before any session saw it</Word></span>}
      <span class="soft">{version.hash == null ? "no file" : bytes(version.size)}</span>
    </p>
  );
}

/** The height of a lane, and the least room between two stops, in pixels. */
const LANE = 24;
const ROOM = 14;

function Lanes({ line, at, choose }: { line: Timeline; at: number; choose: (index: number) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(entry!.contentRect.width));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  const { stops, lanes } = line;
  const height = lanes.length * LANE + 8;
  const most = Math.max(2, Math.floor(width / ROOM));
  // So many stops around the chosen one as there is room for.
  const first = Math.max(0, Math.min(at - Math.floor(most / 2), stops.length - most));
  const some = stops.slice(first, first + most);
  const step = some.length > 1 ? (width - 24) / (some.length - 1) : 0;
  const x = (index: number) => 12 + (index - first) * step;
  const y = (lane: number) => 4 + lane * LANE + LANE / 2;
  const path = some.map((stop, index) => `${index === 0 ? "M" : "L"}${x(first + index).toFixed(1)} ${y(stop.lane)}`).join("");
  const pick = (event: MouseEvent) => {
    const left = event.clientX - box.current!.getBoundingClientRect().left;
    const index = Math.round((left - 12) / (step || 1)) + first;
    choose(Math.max(0, Math.min(stops.length - 1, index)));
  };
  return (
    <div class="lanes" role="img" aria-label={`${count(stops.length, "version")} by ${lanes.map((who) => who.name).join(", ")}. The slider below chooses one.`}>
      <div class="lane-names" aria-hidden="true">{lanes.map((who) => <div key={who.key} style={{ height: `${LANE}px` }}><Badge who={who} /></div>)}</div>
      <div ref={box} class="lane-plot" onClick={pick}>
        <svg width={width} height={height} aria-hidden="true">
          {lanes.map((who, lane) => <line key={who.key} class="lane" x1="0" x2={width} y1={y(lane)} y2={y(lane)} />)}
          <line class="cursor" x1={x(at)} x2={x(at)} y1="0" y2={height} />
          <path class="thread" d={path} />
          {some.map((stop, index) => (
            <circle key={stop.version.clock} class={`stop ${stop.who.kind} a${stop.who.colour} ${stop.version.hash == null ? "hollow" : ""} ${stop.version.overwritten ? "overwritten" : ""}`} cx={x(first + index)} cy={y(stop.lane)} r={first + index === at ? 7 : 4.5}>
              <title>{`${stop.who.name}, ${stop.baseline ? "as first seen" : stop.version.kind}, ${exact(stop.version.time)}`}</title>
            </circle>
          ))}
        </svg>
      </div>
    </div>
  );
}

interface Contents {
  /** Why the older content cannot be shown. */
  missing?: string;
  a: ContentAt | undefined;
  b: ContentAt | undefined;
  spans: readonly Span[] | undefined;
  added: number;
  removed: number;
}

/** A content; undefined if there was no file. */
async function content(file: Ref, at: string): Promise<ContentAt | undefined> {
  try {
    return await call("file/content", { ...named(file), at });
  } catch (wrong) {
    if (wrong instanceof ApiError && wrong.code === "notFound") return undefined;
    throw wrong;
  }
}

function Compare({ file, from, to, gone, mode, folded }: { file: Ref; from: string | undefined; to: string; gone: boolean; mode: Mode; folded: boolean }) {
  const [found, setFound] = useState<Contents>();
  const [error, setError] = useState<string>();
  useEffect(() => {
    let over = false;
    const load = async (): Promise<Contents> => {
      let missing: string | undefined;
      const older = from === undefined ? undefined : content(file, from).catch((wrong: unknown) => {
        if (!(wrong instanceof ApiError && wrong.code === "notKept")) throw wrong;
        missing = sentence(wrong);
        return undefined;
      });
      const [before, after] = await Promise.all([older, gone && to !== "now" ? undefined : content(file, to)]);
      if (missing !== undefined) return { a: undefined, b: after, spans: undefined, added: 0, removed: 0, missing };
      if (!before || !after || before.encoding !== "utf8" || after.encoding !== "utf8" || before.hash === after.hash) return { a: before, b: after, spans: undefined, added: 0, removed: 0 };
      // Without the daemon's diff, as of contents that it cannot compare, the page computes one.
      const answer = await call("file/diff", { ...named(file), from: from!, to, context: 0 }).catch(() => undefined);
      const difference = answer?.files[0];
      return {
        a: before, b: after, spans: answer?.hunks ? spans(answer.hunks, before.text, after.text) : undefined,
        added: difference?.lines?.added ?? 0, removed: difference?.lines?.removed ?? 0,
      };
    };
    // A slider that is dragged passes over many versions.
    const timer = setTimeout(() => {
      load().then(
        (contents) => {
          if (over) return;
          setFound(contents);
          setError(undefined);
        },
        (wrong: unknown) => void (!over && setError(sentence(wrong))),
      );
    }, 80);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [file, from, to, gone]);
  const what = useMemo(() => {
    if (!found) return undefined;
    const label = (at: string | undefined) => `${refShown(file)}, version ${at ?? "before the first"}`;
    return {
      file, mode, folded, spans: found.spans, alone: found.missing !== undefined || (found.a !== undefined && found.a.hash === found.b?.hash),
      a: { text: found.a?.text ?? "", label: label(from), ...(found.a && from ? { at: from } : {}) },
      b: { text: found.b?.text ?? "", label: label(to), ...(found.b ? { at: to } : {}) },
    };
  }, [found, mode, folded]);
  if (error) return <Empty title="This version cannot be shown."><p class="wrong" role="alert">{error}</p></Empty>;
  if (!found || !what) return <p class="soft waiting" role="status">Loading…</p>;
  const { a, b } = found;
  if (a?.encoding === "base64" || b?.encoding === "base64") return <Empty title="This is no text."><p>{[a && bytes(a.size), b && bytes(b.size)].filter(Boolean).join(" before, now ")}</p></Empty>;
  if (!a && !b) return <Empty title="There was no file at either version." />;
  if (found.missing && !b) return <Empty title="This version cannot be compared."><p>{found.missing}</p></Empty>;
  if (what.alone) return <><p class="soft waiting">{found.missing ? `Shown without a comparison: ${found.missing}` : "The contents are the same."}</p><Diff shown={what} class="large" /></>;
  if (what.a.text === "" && what.b.text === "") return <Empty title="The file is empty." />;
  return (
    <>
      <p class="compared soft"><Counts added={found.added} removed={found.removed} /></p>
      <Diff shown={what} class="large" />
    </>
  );
}

function Restore({ file, stop, newest }: { file: Ref; stop: Stop; newest: boolean }) {
  const [asking, setAsking] = useState(false);
  const at = stop.version.clock;
  const restore = async () => {
    setAsking(false);
    try {
      const { files } = await call("file/restore", { ...named(file), at });
      const [done] = files;
      toast(done?.outcome === "unchanged" ? "The file has this content already." : `${done?.outcome === "removed" ? "Removed" : "Restored"} ${refShown(file)}. The content before is kept${done?.recovered[0] ? ` in ${shown(done.recovered[0])}` : ""}.`);
      go(address("file", file), true);
    } catch (wrong) {
      toast(sentence(wrong), undefined, true);
    }
  };
  return (
    <>
      <button type="button" disabled={newest || connection.value !== "live"} onClick={() => setAsking(true)}>Restore…</button>
      {asking && (
        <Dialog title={stop.version.hash == null ? "Remove the file again?" : "Restore this version?"} onClose={() => setAsking(false)}>
          <p>{refShown(file)} gets the content of {exact(stop.version.time)}, by <Badge who={stop.who} named />. You become the author of the change; agents that hold the file are told. What the file holds now is kept.</p>
          <p class="actions">
            <button type="button" class="primary" onClick={() => void restore()}>{stop.version.hash == null ? "Remove" : "Restore"}</button>
            <button type="button" onClick={() => setAsking(false)}>Cancel</button>
          </p>
        </Dialog>
      )}
    </>
  );
}
