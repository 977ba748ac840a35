// The daemon's events. They are gathered and handed out once a frame, so that
// ten thousand at a time block nothing.

import { signal } from "@preact/signals";
import { about } from "./api.js";
import type { Event } from "./protocol.js";

/**
 * `connecting`: nothing was heard yet. `live`: what the page shows is current.
 * `lost`: the daemon is gone. `ended`: the page's server is gone. `forbidden`:
 * the server does not know this page.
 */
export type Connection = "connecting" | "live" | "lost" | "ended" | "forbidden";

/** Events handed out at a time, and how long handing out may take in one frame, in milliseconds. */
const AT_ONCE = 100;
const BUDGET = 8;
/** Characters that wait to be handed out; with more, the page stops to receive until they are. */
const MOST_WAITING = 4_000_000;
/** The pause before the page connects again, in milliseconds. */
const PAUSE = 1000;

export const connection = signal<Connection>("connecting");
/** When the connection was lost; what is shown is of that moment. */
export const lostAt = signal(0);
/** Counts how often events were missed, so that the feed has to be filled again. */
export const missed = signal(0);
/** Counts how often everything has to be queried again. */
export const again = signal(0);

type Take = (events: Event[]) => void;

let takes: Take[] = [];
/** What was received and not handed out yet; it begins at `at`. */
let text = "";
let at = 0;
let scheduled = false;
let stream: AbortController | undefined;
let newest: string | undefined;
let drained: (() => void) | undefined;

/** Hands the events that come from now on to `take`, in order. */
export function onEvents(take: Take): () => void {
  takes = [...takes, take];
  return () => void (takes = takes.filter((one) => one !== take));
}

/**
 * Connects, and stays connected. The stream is read as text, not by an
 * EventSource: that dispatches all messages of a chunk in one task, which
 * blocks the page in a burst.
 */
export function open(since?: string): void {
  if (stream === undefined) window.addEventListener("pagehide", () => stream?.abort());
  newest ??= since;
  stream?.abort();
  stream = new AbortController();
  const { signal } = stream;
  receive(signal).catch(() => undefined).then(() => void (!signal.aborted && whyLost()));
}

async function receive(signal: AbortSignal): Promise<void> {
  const answer = await fetch(newest === undefined ? "/api/events" : `/api/events?since=${encodeURIComponent(newest)}`, {
    signal,
    headers: { Accept: "text/event-stream", "X-Touchmark": "1" },
  });
  if (!answer.ok || !answer.body) return;
  [text, at] = ["", 0];
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done || signal.aborted) return;
    text = text.slice(at) + value;
    at = 0;
    schedule();
    if (text.length > MOST_WAITING) await new Promise<void>((resolve) => (drained = resolve));
  }
}

async function whyLost(): Promise<void> {
  const answer = await about();
  if (answer === "forbidden") return become("forbidden");
  if (answer === undefined) become("ended");
  setTimeout(() => open(), PAUSE);
}

function become(next: Connection): void {
  const before = connection.value;
  if (next === "live") {
    connection.value = next;
    again.value++;
    return;
  }
  if (before === "live" || before === "connecting") lostAt.value = Date.now();
  connection.value = next;
}

function schedule(): void {
  if (scheduled) return;
  scheduled = true;
  // A page in the background gets no frames.
  if (document.visibilityState === "hidden") setTimeout(flush, 500);
  else requestAnimationFrame(flush);
}

/** Reads the next message; undefined if it has not come as a whole. An event is null for what is none. */
function next(): { event: Event | null } | undefined {
  const end = text.indexOf("\n\n", at);
  if (end < 0) return undefined;
  let [name, data, id] = ["", "", ""];
  for (const line of text.slice(at, end).split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data += line.slice(5);
    else if (line.startsWith("id:")) id = line.slice(3).trim();
  }
  at = end + 2;
  if (id !== "") newest = id;
  if (data === "") return { event: null };
  if (name !== "connection") return { event: JSON.parse(data) as Event };
  const told = JSON.parse(data) as { state: string; missed?: boolean };
  if (told.missed) missed.value++;
  become(told.state === "connected" ? "live" : "lost");
  return { event: null };
}

function flush(): void {
  scheduled = false;
  const hidden = document.visibilityState === "hidden";
  const until = performance.now() + (hidden ? 200 : BUDGET);
  let more = true;
  while (more && performance.now() < until) {
    const some: Event[] = [];
    while (more && some.length < AT_ONCE) {
      const read = next();
      more = read !== undefined;
      if (read?.event) some.push(read.event);
    }
    if (some.length > 0) for (const take of takes) take(some);
  }
  if (more) return schedule();
  drained?.();
  drained = undefined;
}
