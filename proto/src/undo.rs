//! Requests that undo changes by their author, and redo them.

use crate::commands::CommandRow;
use crate::{Author, ClientPath, FileMode, Hash, LineRange, Millis, RelPath, SessionId};

/// Undoes changes and leaves the lines of all other authors as they are
/// (UNDO-1). The changes are those of `session`, or the part of them that
/// `prompt`, `since`, `command`, `edit` or `last` selects; or the one version that
/// `path` and `at` name.
#[apply(request!)]
pub struct Undo {
    /// The session whose changes are undone, together with its sub-agents.
    /// `None` if `since`, `command`, `edit` or `last` selects among all agents'
    /// changes.
    pub session: Option<SessionId>,
    /// Only what was done between this prompt and the next one. The prompt is
    /// named by its checkpoint (`k3`), by the agent's id for it, or by `last`.
    pub prompt: Option<String>,
    /// Only what was done after this prompt, or any other checkpoint (`k3`), by
    /// `session`; without a session, by any agent.
    pub since: Option<String>,
    /// Only what this command did (`c5`).
    pub command: Option<String>,
    /// Only what this edit did (`e7`).
    pub edit: Option<String>,
    /// Only the newest edit or command; default false.
    #[serde(default)]
    pub last: bool,
    /// Only one version of this file.
    pub path: Option<ClientPath>,
    /// The version of `path`: a clock from `file/history`.
    pub at: Option<String>,
    /// Only these files, and files below these directories; `None` means all
    /// files.
    pub paths: Option<Vec<ClientPath>>,
    /// Whether to report what would be done without doing it; default false.
    #[serde(default)]
    pub dry_run: bool,
    /// Whether to undo also while the session is in a turn (UNDO-3); default
    /// false.
    #[serde(default)]
    pub now: bool,
    /// How to treat changes that cannot be undone; default `keep`.
    pub conflicts: Option<Conflicts>,
    /// Whether to remove also text that is only likely the author's: what first
    /// appeared while one of its commands ran (UNDO-7); default false.
    #[serde(default)]
    pub likely: bool,
    /// Whether to write also where the present content cannot be kept and so
    /// cannot be brought back (UNDO-4); default false.
    #[serde(default)]
    pub no_redo: bool,
    /// Whether to change also lines that another author has put back, or has
    /// taken away again (UNDO-9); default false.
    #[serde(default)]
    pub decided: bool,
    /// With `dryRun`: return what each file would become (UNDO-11), from the one
    /// with this index in `files` on; the first is 0. Such a request is `busy`
    /// as the undo would be. `None` returns no contents.
    pub contents: Option<u32>,
    /// Undo only if that is still what the dry run with this `plan` would have
    /// done (UNDO-11); else `conflict`, and nothing is done. `None` undoes what
    /// is selected by then.
    pub plan: Option<Hash>,
}

/// How to treat a change whose lines another author has changed since.
#[apply(choice!)]
pub enum Conflicts {
    /// The change stays as it is.
    Keep,
    /// The change stays, between markers, together with the previous text.
    Markers,
}

/// Redoes what an undo has undone.
#[apply(request!)]
pub struct Redo {
    /// The id of the undo (`u2`); default: the newest.
    pub undo: Option<String>,
    /// Whether to report what would be done without doing it; default false.
    #[serde(default)]
    pub dry_run: bool,
    /// Whether to write also where the present content cannot be kept and so
    /// cannot be brought back (UNDO-4); default false.
    #[serde(default)]
    pub no_redo: bool,
}

/// Lists the undos that can be redone.
#[apply(request!)]
pub struct UndoList {}

/// A list of undos, newest first.
#[apply(answer!)]
#[derive(Default)]
pub struct UndoRows {
    /// The undos.
    pub undos: Vec<UndoRow>,
}

/// An undo or a redo that was carried out.
#[apply(answer!)]
pub struct UndoRow {
    /// The id of the undo or redo, such as `u2`.
    pub undo: String,
    /// When the undo or redo was carried out.
    pub time: Millis,
    /// A description of what was undone, for people.
    pub what: String,
    /// The id of the undo that this redoes; `None` if this is an undo.
    pub redo_of: Option<String>,
    /// The files that the undo or redo wrote.
    pub paths: Vec<RelPath>,
}

/// The result of an undo or a redo, or of a dry run of one.
#[apply(answer!)]
#[derive(Default)]
pub struct Undone {
    /// The id of the undo, for `redo`; `None` if nothing was written.
    pub undo: Option<String>,
    /// Each file that the changes affect, by path.
    pub files: Vec<UndoneFile>,
    /// The authors of the changes that were undone.
    pub authors: Vec<Author>,
    /// The commands that changes in `left` name, oldest first; `None` if there
    /// are none.
    pub commands: Option<Vec<CommandRow>>,
    /// With `dryRun`: a hash of what the undo would do: the names of its files,
    /// and their contents and modes before and after. `None` without `dryRun`,
    /// and for a redo.
    pub plan: Option<Hash>,
    /// The index of the first of the `files` whose content is not in this
    /// answer, for the next request's `contents`; `None` if all are.
    pub more: Option<u32>,
    /// What was not searched for the lines in `elsewhere`, as a sentence for
    /// people; `None` if all was.
    pub unsearched: Option<String>,
}

/// The result of an undo in one file.
#[apply(answer!)]
pub struct UndoneFile {
    /// The file.
    pub path: RelPath,
    /// The outcome.
    pub outcome: UndoOutcome,
    /// The number of changes that were undone, counted by their hunks.
    pub hunks: u32,
    /// The changes that stay; `None` if there are none.
    pub conflicts: Option<Vec<UndoConflict>>,
    /// The file's path after a rename was undone; else `None`.
    pub to: Option<RelPath>,
    /// Why nothing was done, or what cannot be brought back, as a sentence for
    /// people; else `None`.
    pub cause: Option<String>,
    /// The changes that stay for another reason than a later change of the
    /// same lines; `None` if there are none.
    pub left: Option<Vec<UndoLeft>>,
    /// The lines that would change, with `dryRun`; else `None`. At most 64 KiB
    /// of text for all files.
    pub changes: Option<Vec<UndoneLines>>,
    /// What the file would become, with `contents`; `None` if it would stay as
    /// it is.
    pub result: Option<UndoneContent>,
    /// Where else lines of the changes stand that the file does not have after
    /// the undo (UNDO-12); `None` if nowhere.
    pub elsewhere: Option<Vec<UndoElsewhere>>,
}

/// Lines of the changes that stand in a stash, or in a commit.
#[apply(answer!)]
pub struct UndoElsewhere {
    /// The id of the commit that has the lines. A stash is one, too.
    pub commit: String,
    /// The number of the stash: 0 is `stash@{0}`. `None` for no stash.
    pub stash: Option<u32>,
    /// The branch whose last commit it is. Without a branch and a stash, it is
    /// the commit that is checked out.
    pub branch: Option<String>,
    /// The name that the file has there; `None` for its present one.
    pub path: Option<RelPath>,
    /// The number of lines.
    pub lines: u32,
    /// The lines, up to 1 KiB. Bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// What an undo would make of a file.
#[apply(answer!)]
pub struct UndoneContent {
    /// The name that would be written: the file's path, or the name behind the
    /// symlinks on it that the undo follows (UNDO-6).
    pub name: RelPath,
    /// The content, or the target of a symlink, as base64; `None` for no file.
    pub base64: Option<String>,
    /// The mode; `None` if an existing file keeps its mode, and a new one gets
    /// the usual one.
    pub mode: Option<FileMode>,
}

/// Lines that an undo would change.
#[apply(answer!)]
pub struct UndoneLines {
    /// The number of the first line, in the file's current content.
    pub start: u32,
    /// The lines that are there. Empty if lines are only added.
    pub before: String,
    /// The lines that replace them. Empty if lines are only removed.
    pub after: String,
}

/// A change that stays, and why.
#[apply(answer!)]
pub struct UndoLeft {
    /// Why it stays.
    pub cause: LeftCause,
    /// The cause, as a sentence for people.
    pub why: String,
    /// Its lines in the file's current content, or in its content before the
    /// undo. `None` if they are not known.
    pub lines: Option<LineRange>,
    /// The number of lines that the change removed in this place, which do not
    /// come back.
    pub removed: u32,
    /// The lines that stay, or those that do not come back if none stay, up to
    /// 4 KiB. Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The command that ran when the change was made (`c5`); `None` for none.
    pub command: Option<String>,
}

/// Why a change stays.
#[apply(choice!)]
pub enum LeftCause {
    /// Its text appeared while a command ran. It may be the user's
    /// (UNDO-7).
    Likely,
    /// A content that it needs is not stored: it cannot be distinguished from
    /// other authors' changes.
    NotKept,
    /// Another author has decided that the lines are as they are now (UNDO-9).
    Decided,
    /// The file has a merge conflict in git's index (UNDO-10).
    Unmerged,
}

/// The outcome of an undo for one file.
#[apply(choice!)]
pub enum UndoOutcome {
    /// The changes were undone, except for the conflicts.
    Undone,
    /// The changes had created the file. It was deleted.
    Deleted,
    /// The changes had deleted the file. It was restored.
    Restored,
    /// The file has its previous path again.
    Renamed,
    /// The file no longer contains the changes.
    Unchanged,
    /// All of the changes stay, since another author has changed the same
    /// lines.
    Conflict,
    /// A content of the file is not kept, so the changes cannot be
    /// distinguished from those of other authors, or the present content could
    /// not be brought back. The file is as it was.
    NotKept,
    /// Another process kept writing to the file. The file was not changed by
    /// the undo.
    Changed,
    /// The file could not be written.
    Failed,
    /// Some of the changes were undone. The others stay: see `conflicts` and
    /// `left`.
    Partly,
    /// All of the changes stay: see `left`.
    Left,
}

/// A change that stays, since another author has changed the same lines.
#[apply(answer!)]
pub struct UndoConflict {
    /// The lines of the change, in the file's current content or in its content
    /// before the undo.
    pub lines: LineRange,
    /// The author who has changed the same lines since.
    pub by: Author,
    /// The text before the change, up to 4 KiB. Bytes that are not UTF-8 are
    /// replaced.
    pub before: String,
}
