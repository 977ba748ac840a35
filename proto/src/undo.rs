//! Requests that take changes away by their author, and put them back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Author, ClientPath, LineRange, Millis, RelPath, SessionId};

/// Takes changes away and leaves everybody else's lines as they are (UNDO-1).
/// Which changes: those of `session`, and of these only what `prompt`,
/// `command`, `edit` or `last` names; or the one version that `path` and `at`
/// name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Undo {
    /// Whose changes, those of its sub-agents with them. `None` for whoever
    /// `command`, `edit` or `last` name.
    pub session: Option<SessionId>,
    /// Only what was done between one prompt and the next: a checkpoint's name
    /// (`k3`), the agent's own id of the prompt, or `last`.
    pub prompt: Option<String>,
    /// Only what this command did (`c5`).
    pub command: Option<String>,
    /// Only this edit (`e7`).
    pub edit: Option<String>,
    /// Only the newest edit or command; false unless told.
    #[serde(default)]
    pub last: bool,
    /// Only one version of this file.
    pub path: Option<ClientPath>,
    /// Which version of it: a clock, as `file/history` tells it.
    pub at: Option<String>,
    /// Only in these files, or below these directories; everywhere unless told.
    pub paths: Option<Vec<ClientPath>>,
    /// Only say what would be done; false unless told.
    #[serde(default)]
    pub dry_run: bool,
    /// Also while the session is in a turn; false unless told.
    #[serde(default)]
    pub now: bool,
    /// What becomes of changes that cannot be taken away; `keep` unless told.
    pub conflicts: Option<Conflicts>,
}

/// What becomes of a change whose lines somebody else has changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Conflicts {
    /// It stays as it is.
    Keep,
    /// It stays, between markers, with what was there before.
    Markers,
}

/// Takes an undo back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Redo {
    /// Which undo (`u2`); the newest unless told.
    pub undo: Option<String>,
    /// Only say what would be done; false unless told.
    #[serde(default)]
    pub dry_run: bool,
}

/// Which undos are kept?
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UndoList {}

/// Kept undos, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UndoRows {
    /// Each of them.
    pub undos: Vec<UndoRow>,
}

/// An undo, or a redo, that was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UndoRow {
    /// Its name.
    pub undo: String,
    /// When.
    pub time: Millis,
    /// What was undone, in words.
    pub what: String,
    /// It was a redo of this one; `None` for an undo.
    pub redo_of: Option<String>,
    /// Which files it wrote.
    pub paths: Vec<RelPath>,
}

/// What was undone, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Undone {
    /// Its name, for `redo`; `None` where nothing was written.
    pub undo: Option<String>,
    /// Each file that those changes touched, by name.
    pub files: Vec<UndoneFile>,
    /// Whose changes they were.
    pub authors: Vec<Author>,
}

/// What became of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UndoneFile {
    /// Which.
    pub path: RelPath,
    /// What became of it.
    pub outcome: UndoOutcome,
    /// Changes taken away, counted by their hunks.
    pub hunks: u32,
    /// Changes that stay; `None` where there are none.
    pub conflicts: Option<Vec<UndoConflict>>,
    /// Its name from now on, where a rename was undone.
    pub to: Option<RelPath>,
    /// Why nothing could be done, in words; `None` unless the outcome is
    /// `notKept`, `changed` or `failed`.
    pub cause: Option<String>,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UndoOutcome {
    /// The changes are gone, but for the conflicts.
    Undone,
    /// The file was made by those changes, and is gone.
    Deleted,
    /// The file was deleted by those changes, and is back.
    Restored,
    /// The file has its old name back.
    Renamed,
    /// The changes are gone already.
    Unchanged,
    /// All of the changes stay, since somebody else has changed the same lines.
    Conflict,
    /// What the file held is not kept, so that the changes cannot be told from
    /// others'.
    NotKept,
    /// Somebody was writing to the file all the time; it is as they left it.
    Changed,
    /// The file could not be written.
    Failed,
}

/// A change that stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UndoConflict {
    /// Where it is in what the file holds now, or held before the undo.
    pub lines: LineRange,
    /// Who has changed the same lines since.
    pub by: Author,
    /// What stood there before, up to 4 KiB; bytes that are no UTF-8 are
    /// replaced.
    pub before: String,
}
