// The words of the page, as docs/glossary.md has them, for people who have not
// read it.

export const WORDS: ReadonlyArray<readonly [word: string, meaning: string]> = [
  ["session", "One agent conversation or task. A sub-agent is a session of its own."],
  ["copy", "What a session has read of a file, and still has in its context."],
  ["stale", "The disk has something else than the session was shown, or wrote, last. touchmark tells the agent before it edits."],
  ["held", "A file that a session has read, mentioned or edited: it is told of changes by others."],
  ["you", "Every author who is no declared agent: a person, a formatter, git."],
  ["unknown", "Changed while touchmark was not watching."],
  ["command", "A shell command of an agent. All that it changed is recorded with it."],
  ["witness", "It sees which files a command is about to write, so that what you save meanwhile is yours. A command is seen whole if no write can have gone unseen."],
  ["version", "One content of one file, with its author and what the attribution rests on."],
  ["review", "The changes of agents that you have neither kept, undone nor committed yet."],
  ["conflict", "A change that cannot be undone, since another author has changed the same lines afterwards. It stays."],
  ["refused", "An edit that was not let through, since its session's copy was out of date or was never read."],
  ["overwritten", "A content that another writer replaced before any session had seen it. It can be restored."],
  ["overwrote", "A session replaced another author's content that it had not seen. That content is listed once, and can be restored."],
  ["brought back", "A content that a file had before, and has again: by an undo, a restore, or git."],
];

export const meaning = (word: string): string => WORDS.find(([known]) => known === word)?.[1] ?? "";
