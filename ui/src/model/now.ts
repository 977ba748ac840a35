// What each session does at this moment: the command that it runs, else what it
// did last; and what a witness has seen of its commands.

import type { Ref } from "../names.js";
import type { CommandRow, SessionWitnessed } from "../protocol.js";
import { count } from "../times.js";
import type { Entry } from "./fold.js";

export interface Deed {
  verb: string;
  /** The file, if it is one. */
  ref?: Ref | undefined;
  /** The number of files. */
  files: number;
  /** The command's text. */
  command?: string | undefined;
  /** Since when, or when. */
  time: number;
}

/** What happens to a session. */
const NO_DEEDS: ReadonlySet<Entry["verb"]> = new Set<Entry["verb"]>(["stale", "closed", "forgotten"]);

/** The deeds by the keys of their authors. `keyOf` gives a session's. */
export function deeds(entries: readonly Entry[], commands: readonly CommandRow[], verbs: Record<Entry["verb"], string>, keyOf: (session: string) => string): Map<string, Deed> {
  const found = new Map<string, Deed>();
  for (const entry of entries) {
    if (entry.files === 0 || NO_DEEDS.has(entry.verb)) continue;
    // A change that was someone else's at first.
    const verb = entry.verb === "corrected" ? "changed" : entry.verb;
    found.set(entry.who.key, { verb: verbs[verb], ref: entry.files === 1 ? entry.refs[0] : undefined, files: entry.files, time: entry.time });
  }
  for (const { session, label, begunAt, endedAt } of commands) {
    if (endedAt == null) found.set(keyOf(session), { verb: "runs", files: 0, command: label?.split("\n")[0] || "a command", time: begunAt });
  }
  return found;
}

/** Returns how many commands of a session a witness has seen, and how many of them not whole. */
export function witnessed({ commands, incomplete }: SessionWitnessed): string {
  const all = commands === 1 ? "" : "all ";
  const not = commands === 1 ? "not " : `${incomplete} not `;
  return `${count(commands, "command")}, ${incomplete === 0 ? all : not}seen whole`;
}
