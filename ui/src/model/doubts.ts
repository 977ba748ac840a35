// Changes that are only likely an agent's: they appeared while a command of it
// ran (UNDO-7). The user is asked whose they are, command by command. The answer
// is a claim (ATTR-18). The extension for VS Code asks in the same way.

import type { Claim, CommandRow, LineRange, ReviewFile, ReviewHunk, Undone } from "../protocol.js";

type Change = ReviewHunk | ReviewFile;

export interface Doubt {
  /** The command that ran (`c5`); undefined if it is not a single one. */
  command: string | undefined;
  /** The session that ran it; undefined if that is not known. */
  session: string | undefined;
  places: Place[];
}

interface Place {
  path: string;
  uri?: string | undefined;
  lines: LineRange | undefined;
  added: number;
  removed: number;
  /** The text that appeared. */
  text: string;
  /** Whether the answer is about these lines alone, since the user was not asked about others of the same version. */
  isPart: boolean;
}

/** Whether text of a change may be the user's. What it only removed comes back without a question, since that takes nothing. */
export const mayBeYours = (change: Change): change is ReviewHunk => "likely" in change && change.likely === true && change.after !== "";

/** Counts the lines of a text; a last line without its line feed counts. */
export function lineCount(text: string): number {
  let lines = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return text.length > 0 && !text.endsWith("\n") ? lines + 1 : lines;
}

/** The doubts about some of the changes in the queue. */
export function doubtsOf(some: readonly Change[], queue: readonly Change[]): Doubt[] {
  const key = ({ id, path }: Change) => `${id} ${path}`;
  const asked = new Set(some.map(key));
  const others = new Set(queue.filter((change) => !asked.has(key(change)) && mayBeYours(change)).map(({ command, path }) => `${command} ${path}`));
  const rows = some.filter(mayBeYours).map((hunk) => {
    const { path, uri, lines, before, after, command } = hunk;
    const isPart = !command || others.has(`${command} ${path}`);
    const session = hunk.authors.find(({ kind }) => kind === "agent")?.session;
    return { command, session, place: { path, uri, lines, added: lineCount(after), removed: lineCount(before), text: after, isPart } };
  });
  return gathered(rows);
}

/** The doubts that a dry run of an undo has found. */
export function doubtsIn({ files, commands }: Undone): Doubt[] {
  const rows = files.flatMap(({ path, uri, left }) =>
    (left ?? [])
      .filter(({ cause }) => cause === "likely")
      .map(({ command, lines, removed, text }) => {
        const session = commands?.find((row) => row.command === command)?.session;
        return { command, session, place: { path, uri, lines: lines ?? undefined, added: lineCount(text), removed, text, isPart: !command } };
      }),
  );
  return gathered(rows);
}

function gathered(rows: readonly { command: string | null | undefined; session: string | null | undefined; place: Place }[]): Doubt[] {
  const found = new Map<string, Doubt>();
  for (const { command, session, place } of rows) {
    const doubt = found.get(command ?? "") ?? { command: command ?? undefined, session: session ?? undefined, places: [] };
    doubt.places.push(place);
    found.set(command ?? "", doubt);
  }
  return [...found.values()];
}

/** The claims by which the user says that the changes are the session's, or the user's. */
export function claims({ command, session: agent, places }: Doubt, by: "session" | "user"): Claim[] {
  const session = by === "session" ? agent : undefined;
  const name = ({ uri, path }: Place) => uri ?? path;
  const whole = places.filter(({ isPart }) => !isPart).map(name);
  const parts = places.filter(({ isPart, lines }) => isPart && lines);
  return [
    ...(whole.length > 0 ? [{ session, command, paths: [...new Set(whole)] }] : []),
    ...parts.map((place) => ({ session, paths: [name(place)], lines: place.lines })),
  ];
}

/** A command as people know it: its line, how long it ran, and its name. */
export function commandShown(name: string, row: CommandRow | undefined): string {
  const line = row?.label?.split("\n")[0];
  const took = row?.endedAt == null ? "" : `, ${duration(row.endedAt - row.begunAt)}`;
  return `${line ? `\`${line}\`` : "a command"} (${name}${took})`;
}

/** How long something took: `120 ms`, `42 s`, `3 min 2 s`, `2 h 5 min`. */
export function duration(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 1) return `${Math.max(0, ms)} ms`;
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
}
