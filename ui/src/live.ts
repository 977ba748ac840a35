// What the page knows of the workspace now: sessions, the feed, and lists that
// are queried again when something happened to them.

import { type ReadonlySignal, signal } from "@preact/signals";
import { type About, ApiError, about, call, sentence } from "./api.js";
import { authors } from "./model/authors.js";
import { Fold } from "./model/fold.js";
import type { CommandRow, Event, Methods, SessionRow } from "./protocol.js";
import { connection, missed, onEvents, open } from "./stream.js";

/** The time, for relative times; it moves once a second while the page is looked at. */
export const now = signal(Date.now());
export const place = signal<About | undefined>(undefined);
export const fold = new Fold(authors);
/** Raised at most once a frame, when the feed has changed. */
export const feedRevision = signal(0);
/** How many versions were seen; views that show files watch it. */
export const versionsSeen = signal(0);
/** The files that the newest events changed, for the view of one file. */
export const touched = signal<ReadonlySet<string>>(new Set());

export interface Query<T> extends ReadonlySignal<Loaded<T>> {
  /** Asks again, soon. */
  poke(): void;
}

export interface Loaded<T> {
  value?: T;
  error?: string;
  /** When it was answered. */
  at?: number;
}

/**
 * A list that is asked for again by `poke`: never twice at a time, and not
 * again before `pause` milliseconds, or four times what the last answer took,
 * so that a burst of changes does not keep the daemon busy.
 */
export function query<T>(load: () => Promise<T>, pause = 400): Query<T> {
  const state = signal<Loaded<T>>({});
  let running = false;
  let wanted = false;
  const run = async () => {
    running = true;
    wanted = false;
    const began = performance.now();
    try {
      state.value = { value: await load(), at: Date.now() };
    } catch (error) {
      // The banner tells that the daemon is gone; what was known stays, marked as of then.
      if (!(error instanceof ApiError && error.isGone)) state.value = { ...state.peek(), error: sentence(error) };
    }
    setTimeout(() => {
      running = false;
      if (wanted) void run();
    }, Math.max(pause, 4 * (performance.now() - began)));
  };
  return Object.assign(state, {
    poke: () => {
      wanted = true;
      if (!running) void run();
    },
  });
}

/** All pages of a list, up to `most` rows. */
export async function pages<R>(most: number, load: (cursor: string | null) => Promise<{ rows: R[]; more: string | null | undefined }>): Promise<R[]> {
  const all: R[] = [];
  let cursor: string | null = null;
  do {
    const page: { rows: R[]; more: string | null | undefined } = await load(cursor);
    all.push(...page.rows);
    cursor = page.more ?? null;
  } while (cursor !== null && all.length < most);
  return all;
}

export const sessions = query<SessionRow[]>(async () => {
  const rows = await pages(10_000, async (cursor) => {
    const { sessions, more } = await call("session/list", { cursor });
    return { rows: sessions, more };
  });
  authors.learn(rows);
  return rows;
});

/** Asked for while the page is looked at: most of it, such as a pause, is no event. */
export const status = query(() => call("status", {}), 2000);
/** The commands that the queue names; undefined for those that are no longer kept. */
export const commands = new Map<string, CommandRow | undefined>();
export const review = query(async () => {
  const found = await call("review/list", { limit: 1000 });
  const named = new Set([...found.hunks, ...(found.files ?? [])].flatMap(({ command }) => command ?? []));
  // Of one that still runs it is not known yet how long it takes.
  const isNew = (command: string) => !commands.has(command) || (commands.get(command) ?? { endedAt: 0 }).endedAt == null;
  if ([...named].some(isNew)) {
    for (const row of (await call("command/list", { limit: 1000 })).commands) commands.set(row.command, row);
    for (const command of named) commands.set(command, commands.get(command));
  }
  return found;
}, 600);
export const undos = query(async () => (await call("undo/list", {})).undos, 600);

/** The newest commands. Their beginnings are no events. */
export const ran = query(async () => (await call("command/list", { limit: 100 })).commands, 3000);
/** What was lost in the last day, and can be brought back. */
export const losses = query(async () => {
  const [{ rows }, { items }] = await Promise.all([call("activity/list", { kinds: ["overwrote"], since: "@1d", limit: 3 }), call("recovery/list", {})]);
  return { overwrote: rows, kept: items.filter(({ time }) => time > Date.now() - 86_400_000).length };
}, 2000);

/** The current state of the copies of a session that are not as on disk. */
export function copies(session: string, all: boolean): Promise<Methods["file/status"]["result"]> {
  return call("file/status", { session, limit: all ? 500 : 50, ...(all ? {} : { state: ["stale", "deleted", "unreadable", "unknown"] }) });
}

function take(events: Event[]): void {
  const at = Date.now();
  let [versions, listed] = [0, false];
  const refs = new Set<string>();
  for (const event of events) {
    fold.push(event, at);
    if (event.type === "version") {
      versions++;
      refs.add(event.version.uri ?? event.version.path);
    }
    if (event.type !== "read" || events.length < 50) listed = true;
  }
  feedRevision.value = fold.revision;
  if (versions > 0) {
    versionsSeen.value += versions;
    touched.value = refs;
    review.poke();
  }
  if (versions > 0 || events.some((event) => event.type === "recovered")) losses.poke();
  if (listed) sessions.poke();
}

/** The number of a clock's fact, by which facts are in order. */
const fact = (clock: string) => Number(clock.slice(clock.lastIndexOf(":") + 1));

/** Fills the feed with what happened lately. Returns the clock from which events continue it. */
async function fill(): Promise<string> {
  const [report, rows] = await Promise.all([call("status", {}), call("session/list", {})]);
  authors.learn(rows.sessions);
  const [log, commands, undone] = await Promise.all([
    call("file/log", { limit: 300, lines: true }),
    call("command/list", { limit: 100 }),
    call("activity/list", { kinds: ["undo", "redo"], limit: 100 }),
  ]);
  fold.clear();
  const past = [
    ...log.entries.map((entry) => ({ n: fact(entry.version.clock), show: () => fold.version(entry.version, entry.lines ?? undefined) })),
    // A redo is described by the undo that it takes back.
    ...undone.rows.map(({ clock, kind, name, text, files, time }) => ({
      n: fact(clock),
      show: () => (kind === "redo" ? fold.undone(time, true, text ?? "", files ?? 0) : fold.undone(time, false, name ?? "", files ?? 0, text ?? undefined)),
    })),
  ];
  for (const { show } of past.sort((one, other) => one.n - other.n)) show();
  for (const command of commands.commands) fold.command(command);
  feedRevision.value = fold.revision;
  return report.clock;
}

export function refresh(): void {
  for (const list of [sessions, status, review, undos, ran, losses]) list.poke();
}

/** Starts everything. */
export async function start(): Promise<void> {
  onEvents(take);
  missed.subscribe((times) => void (times > 0 && fill().catch(() => undefined)));
  setInterval(() => {
    if (document.visibilityState !== "visible" || connection.peek() !== "live") return;
    now.value = Date.now();
    status.poke();
  }, 1000);
  const told = await about();
  if (told === "forbidden") return void (connection.value = "forbidden");
  if (told) place.value = told;
  try {
    open(await fill());
  } catch {
    // No daemon yet: the stream says when there is one.
    open();
  }
}
