// Rows as the daemon sends them, with what a test does not care about filled in.

import type { Activity, Author, CommandRow, DiffHunk, Event, ReviewFile, ReviewHunk, SessionRow, Version } from "../src/protocol.js";

export const agent = (session: string, label = session): Author => ({ kind: "agent", session, label });
export const user: Author = { kind: "user" };

export function version(n: number, path: string, author: Author, more: Partial<Version> = {}): Version {
  return { clock: `1:${n}`, path, kind: "modified", hash: `h${n}`, size: 1, time: n * 100, author, evidence: "unmarked", ...more };
}

export const changed = (of: Version, lines?: { added: number; removed: number }): Event => ({ type: "version", subscription: 1, clock: of.clock, version: of, ...(lines ? { lines } : {}) });

export const stale = (session: string, path: string): Event =>
  ({ type: "stale", subscription: 1, clock: "1:1", session, label: session, file: { path, state: "stale" } }) as unknown as Event;

export const read = (session: string, path: string): Event => ({ type: "read", subscription: 1, clock: "1:1", session, label: session, path, verdict: "first" });

export const ran = (command: string, session: string, label: string, more: Partial<CommandRow> = {}): Event & { type: "command" } => ({
  type: "command", subscription: 1, clock: "1:1",
  command: { command, session, sessionLabel: session, label, begun: "1:1", begunAt: 0, versions: 1, ...more },
});

export const session = (id: string, openedAt: number): SessionRow => ({ session: id, label: id, open: true, openedAt, lastActive: openedAt, reads: 0, edits: 0, stale: 0, modified: 0 });

export const hunk = (path: string, id: string, by: Author, more: Partial<ReviewHunk> = {}): ReviewHunk => ({ path, id, authors: [by], before: "a\n", after: "b\n", lines: { start: 1, end: 1 }, time: 1, ...more });

export const whole = (path: string, id: string, by: Author, more: Partial<ReviewFile> = {}): ReviewFile => ({ path, id, authors: [by], modeBefore: "100644", mode: "100755", time: 1, ...more });

/** A hunk of lines without context; their text does not matter. */
export const lines = (oldStart: number, oldLines: number, newStart: number, newLines: number): DiffHunk => ({
  oldStart, oldLines, newStart, newLines,
  lines: [...Array(oldLines).fill("removed"), ...Array(newLines).fill("added")].map((kind) => ({ kind, text: "", author: user, evidence: "unmarked", time: 0 })),
});

export const did = (session: string, time: number, kind: Activity["kind"], path?: string): Activity => ({ clock: `1:${time}`, session, label: session, time, kind, ...(path ? { path } : {}) });
