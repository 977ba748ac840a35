// Each author has one colour, one mark of one to five characters and one shape,
// everywhere the same.

import { shown } from "../names.js";
import type { Author, BlameLine, SessionRow } from "../protocol.js";

/** The number of colours in app.css (`--a0` ...); agents beyond it share colours, never marks. */
export const COLOURS = 8;

export interface Who {
  /** The same for the same author: a session's id, a commit's id, `user`, `unknown` or `touchmark`. */
  key: string;
  kind: "user" | "agent" | "unknown" | "committed" | "touchmark";
  /** As people read it. */
  name: string;
  /** The badge's letters: `cl1` of `claude-1`. */
  mark: string;
  /** The number of an agent's colour. */
  colour: number;
}

export const USER: Who = { key: "user", kind: "user", name: "you", mark: "you", colour: 0 };
export const UNKNOWN: Who = { key: "unknown", kind: "unknown", name: "unknown", mark: "?", colour: 0 };
export const TOUCHMARK: Who = { key: "touchmark", kind: "touchmark", name: "touchmark", mark: "t", colour: 0 };

/** Gives sessions their colours in the order in which they were first opened, so that a reload changes none. */
export class Authors {
  readonly #agents = new Map<string, Who>();

  /** Takes notice of sessions, as `session/list` has them. */
  learn(rows: readonly SessionRow[]): void {
    for (const row of [...rows].sort((one, other) => one.openedAt - other.openedAt)) this.agent(row.session, row.label);
  }

  agent(session: string, label?: string | null): Who {
    const known = this.#agents.get(session);
    if (known && (!label || known.name === shown(label))) return known;
    const name = shown(label ?? session);
    const who: Who = { key: session, kind: "agent", name, mark: markOf(name), colour: known?.colour ?? this.#agents.size % COLOURS };
    this.#agents.set(session, who);
    return who;
  }

  of(author: Author | null | undefined): Who {
    if (author?.kind === "user") return USER;
    if (author?.kind === "agent" && author.session) return this.agent(author.session, author.label);
    return UNKNOWN;
  }

  /** Who wrote a line of `file/blame`: of a line that belongs to a commit, the commit's author. */
  ofLine({ author, commit }: BlameLine): Who {
    if (author.kind !== "committed" || !commit) return this.of(author);
    // Where a shallow clone ends, the author is not known.
    const name = commit.author == null ? "an earlier commit, or this one" : shown(commit.author);
    return { key: commit.id, kind: "committed", name, mark: commit.id.slice(0, 5), colour: 0 };
  }
}

/** Whether the author of a version or a line is only likely: its only evidence is that a command ran (ATTR-6). */
export const isLikely = ({ evidence, command }: { evidence: string; command?: string | null }): boolean => evidence === "command" && command != null;

/** `claude-12` becomes `cl12`; a name without a number becomes its first two characters. */
export function markOf(name: string): string {
  const parts = /^(\p{L}{1,2})[^]*?-(\d{1,3})$/u.exec(name);
  if (parts) return `${parts[1]}${parts[2]}`.toLowerCase();
  return [...name].slice(0, 2).join("").toLowerCase();
}

export const authors = new Authors();
