// Authors, times and lines, in the words that the user sees.

import type { Author, BlameLine, Evidence, LineRange, ReviewHunk } from "../../../bindings/typescript/src/generated/protocol";

/** A session's name for people, which requests take as well: its label, or its id where it has none. */
export function nameOf({ session, label }: { session?: string | null; label?: string | null }): string | undefined {
  return label ?? session ?? undefined;
}

/** Who wrote, in a few words. Only an editor's report tells the user from programs that declare nothing. */
export function authorOf({ author, evidence, command }: { author: Author; evidence?: Evidence; command?: string | null }): string {
  if (author.kind === "agent") {
    // All that is known is that a command ran (ATTR-6).
    const isLikely = evidence === "command" && command != null;
    return `${nameOf(author) ?? "an agent"}${isLikely ? " or you" : ""}`;
  }
  if (author.kind === "user") return evidence === "editor" ? "you" : "you or another program";
  return "unknown";
}

/** Who wrote a line, in a few words: of a line that belongs to a commit, the commit's author. */
export function writerOf(line: BlameLine): string {
  if (line.author.kind !== "committed" || !line.commit) return authorOf(line);
  // The name comes from anywhere. What is hidden in it could mislead.
  const name = [...(line.commit.author ?? "").replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\ufffd")];
  const short = name.length > 60 ? `${name.slice(0, 59).join("")}…` : name.join("");
  const commit = line.commit.id.slice(0, 8);
  // Where a shallow clone ends, the author is not known.
  return short.trim() === "" ? `commit ${commit}, or an earlier one` : `${short} (commit ${commit})`;
}

/** The authors of a change, each once. */
export function authorsOf({ authors, likely }: Pick<ReviewHunk, "authors"> & { likely?: boolean | null }): string {
  const all = [...new Set(authors.map((author) => authorOf({ author })))].join(", ");
  // It appeared while a command ran, and may be the user's.
  return likely ? `${all} or you` : all;
}

/** How long ago a moment was; `now` and `time` in milliseconds since 1970. */
export function ago(time: number, now = Date.now()): string {
  const minutes = Math.floor(Math.max(0, now - time) / 60_000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ago`;
  const days = Math.floor(hours / 24);
  return days === 1 ? "1 day ago" : `${days} days ago`;
}

/** `line 4`, or `lines 4-6`. */
export function lines({ start, end }: LineRange): string {
  return start === end ? `line ${start}` : `lines ${start}-${end}`;
}

/** What a change did to its lines. */
export function what({ created, deleted, before, after, lines: at }: ReviewHunk): string {
  const count = (text: string) => text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
  if (deleted) return "deleted the file";
  if (created) return `new file, ${count(after)} ${count(after) === 1 ? "line" : "lines"}`;
  if (after === "") return `${count(before)} ${count(before) === 1 ? "line" : "lines"} removed after line ${at.start}`;
  return `${lines(at)} ${before === "" ? "added" : "changed"}`;
}
