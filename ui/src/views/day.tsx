// A day: who read and changed what, when, and what was refused, overwritten or
// brought back.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call } from "../api.js";
import { feedRevision, now, query } from "../live.js";
import { authors } from "../model/authors.js";
import { bins, extent, type Kind, KINDS, type Lane, lanes, type Mark, ticks } from "../model/day.js";
import { Badge, Command, Counts, Empty, FileLink, Word } from "../parts/basics.js";
import type { Activity, LogEntry, Methods, UndoRow } from "../protocol.js";
import { address, go, route } from "../router.js";
import { again } from "../stream.js";
import { addDays, atTime, clockTime, count, dayName, dayStart, exact, grouped } from "../times.js";

/** Rows that are read for one day, of versions and of what is no version. */
const MOST = 20_000;

interface Loaded {
  log: LogEntry[];
  deeds: Activity[];
  undos: UndoRow[];
  partial: boolean;
  /** Reads and refusals before this time are no longer known. */
  completeSince: number;
}

async function load(start: number, end: number): Promise<Loaded> {
  const range = { since: atTime(start), until: end < Date.now() ? atTime(end) : null, limit: 1000 };
  const found: Loaded = { log: [], deeds: [], undos: (await call("undo/list", {})).undos, partial: false, completeSince: 0 };
  let before: string | null = null;
  do {
    const page: Methods["file/log"]["result"] = await call("file/log", { ...range, lines: true, before });
    found.log.push(...page.entries);
    before = page.more ?? null;
  } while (before !== null && found.log.length < MOST);
  found.partial = before !== null;
  do {
    const page: Methods["activity/list"]["result"] = await call("activity/list", { ...range, before });
    found.deeds.push(...page.rows);
    found.completeSince = page.completeSince;
    before = page.more ?? null;
  } while (before !== null && found.deeds.length < MOST);
  found.partial ||= before !== null;
  return found;
}

export function Day() {
  const today = dayStart(dayName(now.value))!;
  const start = dayStart(route.value.rest) ?? today;
  const end = addDays(start, 1);
  const [chosen, setChosen] = useState<readonly Mark[]>([]);
  const list = useMemo(() => query(() => load(start, end), 1500), [start]);
  const { value: loaded, error } = list.value;
  // A day that is over does not change.
  useEffect(() => list.poke(), [list, start === today ? feedRevision.value : 0, again.value]);
  useEffect(() => setChosen([]), [start]);
  const all = useMemo(
    () => (loaded ? lanes(loaded.log, loaded.deeds, loaded.undos, authors, start, end) : undefined),
    [loaded, start],
  );
  const show = (time: number) => go(address("day", dayName(time) === dayName(today) ? "" : dayName(time)));
  return (
    <section class="day" aria-labelledby="day">
      <div class="head">
        <h1 id="day">{new Date(start).toLocaleDateString("en-GB", { weekday: "long", day: "numeric", month: "long", year: "numeric" })}</h1>
        <div class="days">
          <button type="button" class="quiet" onClick={() => show(addDays(start, -1))}>‹ Day before</button>
          <input type="date" aria-label="Day" value={dayName(start)} max={dayName(today)} onChange={(event) => { const time = dayStart(event.currentTarget.value); if (time !== undefined) show(time); }} />
          <button type="button" class="quiet" disabled={start >= today} onClick={() => show(addDays(start, 1))}>Day after ›</button>
          {start !== today && <button type="button" class="quiet" onClick={() => show(today)}>Today</button>}
        </div>
      </div>
      {error && <p class="wrong" role="alert">{error}</p>}
      {!all && !error && <p class="soft waiting" role="status">Loading…</p>}
      {all && all.length === 0 && (
        <Empty title="Nothing happened on this day.">
          <p>What agents read and change, and what you save, is drawn here. The days before: ‹ Day before, or in a terminal</p>
          <p><Command text={`touchmark log --since ${dayName(addDays(start, -7))}`} /></p>
        </Empty>
      )}
      {all && all.length > 0 && (
        <>
          <Legend />
          <Plot all={all} start={start} end={end} choose={setChosen} />
          {loaded?.partial && <p class="soft">Only the newest {grouped(MOST)} rows of this day are shown.</p>}
          {loaded && loaded.completeSince > start && <p class="soft hint">Reads and refusals are known since {loaded.completeSince < end ? clockTime(loaded.completeSince, false) : exact(loaded.completeSince)}: the daemon drops them when it ends.</p>}
          <Chosen marks={chosen} />
          <Numbers all={all} />
        </>
      )}
    </section>
  );
}

const NAMES: Record<Kind, string> = { read: "read", changed: "changed", refused: "refused", overwrote: "overwrote", back: "brought back" };

function Legend() {
  return (
    <p class="legend soft" aria-hidden="true">
      <span><svg width="12" height="12"><rect class="bar changed user" x="1" y="1" width="4" height="11" /><rect class="bar changed user" x="7" y="5" width="4" height="7" /></svg> changed (up)</span>
      <span><svg width="12" height="12"><rect class="bar read user" x="1" y="0" width="4" height="9" /><rect class="bar read user" x="7" y="0" width="4" height="5" /></svg> read (down)</span>
      <span><svg width="14" height="12"><path class="glyph overwrote" d="M2 2h10l-5 8z" /></svg> overwrote unseen</span>
      <span><svg width="12" height="12"><path class="glyph refused" d="M2 2l8 8m0-8l-8 8" /></svg> edit refused</span>
      <span><svg width="14" height="12"><path class="glyph back" d="M7 1l5 5-5 5-5-5z" /></svg> brought back</span>
    </p>
  );
}

/** The height of a lane, of its bars upwards and downwards, and the width of a bin, in pixels. */
const LANE = 66;
const UP = 38;
const DOWN = 16;
const BIN = 6;
const AXIS = 22;

function Plot({ all, start, end, choose }: { all: readonly Lane[]; start: number; end: number; choose: (marks: readonly Mark[]) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(900);
  const [cursor, setCursor] = useState<number>();
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(entry!.contentRect.width));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  const minute = Math.floor(now.value / 60_000) * 60_000;
  const [from, to] = useMemo(() => extent(all, start, end, minute), [all, minute]);
  const number = Math.max(10, Math.floor(width / BIN));
  const binned = useMemo(() => all.map((lane) => bins(lane, from, to, number)), [all, from, to, number]);
  const top = (kind: Kind) => Math.max(1, ...binned.flatMap((lane) => lane.map((bin) => bin?.counts[kind] ?? 0)));
  const [mostChanged, mostRead] = useMemo(() => [top("changed"), top("read")], [binned]);
  const x = (time: number) => ((time - from) / (to - from)) * width;
  const size = width / number;
  const height = all.length * LANE + AXIS;
  const pick = (at: number) => {
    setCursor(at);
    // The neighbours too: a bin is narrow for a finger.
    choose(binned.flatMap((lane) => [at - 1, at, at + 1].flatMap((bin) => lane[bin]?.marks ?? [])).sort((one, other) => other.time - one.time));
  };
  const step = (by: number) => {
    let at = cursor ?? (by > 0 ? -1 : number);
    do at += by;
    while (at >= 0 && at < number && !binned.some((lane) => lane[at]));
    if (at >= 0 && at < number) pick(at);
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    step(event.key === "ArrowRight" ? 1 : -1);
  };
  const scale = (value: number, most: number, room: number) => (value === 0 ? 0 : Math.max(3, Math.sqrt(value / most) * room));
  const moment = (at: number) => from + ((at + 0.5) / number) * (to - from);
  return (
    <div class="plot">
      <div class="plot-names">
        {all.map((lane) => (
          <div key={lane.who.key} class="plot-name" style={{ height: `${LANE}px` }}>
            <Badge who={lane.who} named />
          </div>
        ))}
      </div>
      <div
        ref={box}
        class="plot-box"
        tabIndex={0}
        role="slider"
        aria-label="Time of day; the changes at the time are listed below"
        aria-valuemin={0}
        aria-valuemax={number - 1}
        aria-valuenow={cursor ?? 0}
        aria-valuetext={cursor === undefined ? "no time chosen" : clockTime(moment(cursor), false)}
        onKeyDown={pressed}
        onClick={(event) => pick(Math.min(number - 1, Math.floor((event.clientX - box.current!.getBoundingClientRect().left) / size)))}
      >
        <svg width={width} height={height} aria-hidden="true">
          {ticks(from, to, Math.max(2, Math.floor(width / 64))).map((time) => (
            <g key={time}>
              <line class="grid" x1={x(time)} x2={x(time)} y1="0" y2={height - AXIS} />
              <text class="tick" x={Math.min(Math.max(x(time), 16), width - 16)} y={height - 6} text-anchor="middle">{clockTime(time, false)}</text>
            </g>
          ))}
          {now.value > from && now.value < to && <line class="present" x1={x(now.value)} x2={x(now.value)} y1="0" y2={height - AXIS} />}
          {cursor !== undefined && <rect class="cursor" x={(cursor - 1) * size} width={3 * size} y="0" height={height - AXIS} />}
          {all.map((lane, index) => {
            const base = index * LANE + 8 + UP;
            const style = `${lane.who.kind} a${lane.who.colour}`;
            return (
              <g key={lane.who.key}>
                <line class="lane" x1="0" x2={width} y1={base} y2={base} />
                {binned[index]!.map((bin, at) => {
                  if (!bin) return null;
                  const up = scale(bin.counts.changed + bin.counts.back, mostChanged, UP);
                  const down = scale(bin.counts.read, mostRead, DOWN);
                  const left = at * size + 0.5;
                  const middle = at * size + size / 2;
                  return (
                    <g key={at}>
                      {up > 0 && <rect class={`bar changed ${style}`} x={left} width={size - 1.5} y={base - up} height={up} rx="1" />}
                      {down > 0 && <rect class={`bar read ${style}`} x={left} width={size - 1.5} y={base + 1} height={down} rx="1" />}
                      {bin.counts.back > 0 && <path class="glyph back" d={`M${middle} ${base - up - 12}l5 5-5 5-5-5z`} />}
                      {bin.counts.refused > 0 && <path class="glyph refused" d={`M${middle - 4} ${base + down + 5}l8 8m0-8l-8 8`} />}
                      {bin.counts.overwrote > 0 && <path class="glyph overwrote" d={`M${middle - 5} ${base + 4}h10l-5 8z`} />}
                    </g>
                  );
                })}
              </g>
            );
          })}
        </svg>
      </div>
    </div>
  );
}

function Chosen({ marks }: { marks: readonly Mark[] }) {
  if (marks.length === 0) return <p class="soft hint">Choose a time in the plot, or move along it with ← and →, to see what happened then.</p>;
  return (
    <ul class="chosen" tabIndex={0} aria-label={`${count(marks.length, "event")} at the chosen time`}>
      {marks.slice(0, 100).map((mark, index) => (
        <li key={index}>
          <time class="soft">{clockTime(mark.time)}</time>
          <Badge who={mark.who} />
          <span>{NAMES[mark.kind]}</span>
          {mark.ref !== undefined ? <FileLink file={mark.ref} /> : <span class="soft">an edit: {mark.cause}</span>}
          <Counts added={mark.added} removed={mark.removed} />
        </li>
      ))}
      {marks.length > 100 && <li class="soft">and {marks.length - 100} more</li>}
    </ul>
  );
}

function Numbers({ all }: { all: readonly Lane[] }) {
  const most = Object.fromEntries(KINDS.map((kind) => [kind, Math.max(1, ...all.map((lane) => lane.counts[kind]))])) as Record<Kind, number>;
  return (
    <div class="table" tabIndex={0} role="group" aria-label="Numbers">
      <table>
        <caption class="unseen">What each author did on this day</caption>
        <thead>
          <tr>
            <th scope="col">Author</th>
            {KINDS.map((kind) => <th key={kind} scope="col"><Word is={NAMES[kind]}>{NAMES[kind]}</Word></th>)}
            <th scope="col">Files</th>
            <th scope="col">Lines</th>
          </tr>
        </thead>
        <tbody>
          {all.map((lane) => (
            <tr key={lane.who.key}>
              <th scope="row"><Badge who={lane.who} named /></th>
              {KINDS.map((kind) => (
                <td key={kind}>
                  <span class="figure">{lane.counts[kind] === 0 ? <span class="soft">–</span> : grouped(lane.counts[kind])}</span>
                  <span class="meter" aria-hidden="true"><span class={`${lane.who.kind} a${lane.who.colour}`} style={{ width: `${(100 * lane.counts[kind]) / most[kind]}%` }} /></span>
                </td>
              ))}
              <td><span class="figure">{lane.files === 0 ? <span class="soft">–</span> : grouped(lane.files)}</span></td>
              <td><Counts added={lane.added} removed={lane.removed} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
