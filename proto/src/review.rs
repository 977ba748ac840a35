//! Requests about agents' changes that have not been reviewed (REV).

use crate::{Author, ClientPath, FileMode, LineRange, Millis, RelPath, SessionId};

/// Lists agents' changes that have been neither kept nor undone.
#[apply(request!)]
pub struct ReviewList {
    /// Only changes by this session and its sub-agents; `None` means all
    /// agents' changes.
    pub session: Option<SessionId>,
    /// Only these files, and files below these directories; `None` means all
    /// files.
    pub paths: Option<Vec<ClientPath>>,
    /// The maximum number of rows to return; default 1,000 (LIM-2).
    pub limit: Option<u32>,
    /// Only changes that were made by this command alone (`c5`); `None` means
    /// all changes.
    pub command: Option<String>,
}

/// The review queue, sorted by file and line.
#[apply(answer!)]
#[derive(Default)]
pub struct ReviewHunks {
    /// The changes.
    pub hunks: Vec<ReviewHunk>,
    /// True if the queue has more changes; `None` if the list is complete.
    pub more: Option<bool>,
    /// Changes that have no lines: of modes, and of symlinks. `None` if there
    /// are none. They are kept and undone by their ids, like the others.
    pub files: Option<Vec<ReviewFile>>,
    /// The user's comments, the oldest first, also those on changes that have
    /// left the queue; `None` if there are none.
    pub comments: Option<Vec<Comment>>,
}

/// A change of a file's mode by agents, or of a symlink: created, removed,
/// retargeted, or put in the place of a file.
#[apply(answer!)]
pub struct ReviewFile {
    /// The change's id.
    pub id: String,
    /// The path of the file.
    pub path: RelPath,
    /// The mode without the change; `None` if the change created the file.
    pub mode_before: Option<FileMode>,
    /// The current mode; `None` if the change deleted the file.
    pub mode: Option<FileMode>,
    /// The target of the symlink without the change; `None` for any other file.
    /// Bytes that are not UTF-8 are replaced.
    pub target_before: Option<String>,
    /// The current target of the symlink; `None` for any other file. Bytes that
    /// are not UTF-8 are replaced.
    pub target: Option<String>,
    /// The authors of the change.
    pub authors: Vec<Author>,
    /// When the daemon saw the newest part of the change.
    pub time: Millis,
    /// The command that made all of the change (`c5`); `None` if it has another
    /// origin too.
    pub command: Option<String>,
    /// True if the user has marked the change as viewed, and it has not changed
    /// since; else `None`.
    pub viewed: Option<bool>,
}

/// A group of adjacent lines that agents have changed.
#[apply(answer!)]
pub struct ReviewHunk {
    /// The change's id. It stays the same when other lines of the file change.
    pub id: String,
    /// The path of the file.
    pub path: RelPath,
    /// The lines in the file's current content. If the change only removed
    /// lines: the line before them.
    pub lines: LineRange,
    /// The text without the change. Bytes that are not UTF-8 are replaced.
    pub before: String,
    /// The current text. Bytes that are not UTF-8 are replaced.
    pub after: String,
    /// True if the change created the file; else `None`.
    pub created: Option<bool>,
    /// True if the change deleted the file; else `None`.
    pub deleted: Option<bool>,
    /// The authors who changed the lines.
    pub authors: Vec<Author>,
    /// When the daemon saw the newest change of the lines.
    pub time: Millis,
    /// True if a part of the change is only likely an agent's: it was made while
    /// a command ran, and may be the user's (UNDO-7). Else `None`.
    pub likely: Option<bool>,
    /// The command that made all of the change (`c5`); `None` if it has another
    /// origin too.
    pub command: Option<String>,
    /// True if the user has marked the change as viewed, and it has not changed
    /// since; else `None`.
    pub viewed: Option<bool>,
}

/// The name of a change in the review queue.
#[apply(request!)]
pub struct ReviewNamed {
    /// The file.
    pub path: ClientPath,
    /// The change's id, from `review/list`.
    pub id: String,
}

/// Accepts changes: they stay in their files and leave the review queue.
#[apply(request!)]
pub struct ReviewKeep {
    /// The changes.
    pub hunks: Vec<ReviewNamed>,
}

/// The result of `review/keep`.
#[apply(answer!)]
pub struct ReviewKept {
    /// The number of changes that were accepted.
    pub kept: u32,
}

/// Undoes changes. They are in `undo/list` from then on.
#[apply(request!)]
pub struct ReviewUndo {
    /// The changes.
    pub hunks: Vec<ReviewNamed>,
    /// Whether to write also where the present content cannot be kept and so
    /// cannot be brought back (UNDO-4); default false.
    #[serde(default)]
    pub no_redo: bool,
}

/// Marks changes as viewed, or removes the marks (REV-4). A change that is
/// viewed stays in the queue.
#[apply(request!)]
pub struct ReviewView {
    /// The changes.
    pub hunks: Vec<ReviewNamed>,
    /// Whether the user has viewed them.
    pub viewed: bool,
}

/// The result of `review/view`.
#[apply(answer!)]
pub struct ReviewViewed {
    /// The number of changes whose mark was set or removed.
    pub changed: u32,
}

/// Writes a comment on a change, which is told to the sessions that made it
/// (REV-5). It replaces a comment on the same change that no session has
/// received yet.
#[apply(request!)]
pub struct ReviewComment {
    /// The file.
    pub path: ClientPath,
    /// The change's id, from `review/list`.
    pub id: String,
    /// The comment, at most 1,000 bytes. An empty text withdraws the comment
    /// that no session has received yet.
    pub text: String,
}

/// The result of `review/comment`.
#[apply(answer!)]
pub struct Commented {
    /// The comment; `None` if it was withdrawn.
    pub comment: Option<Comment>,
}

/// A comment of the user's on a change.
#[apply(answer!)]
pub struct Comment {
    /// The file.
    pub path: RelPath,
    /// The change's id.
    pub id: String,
    /// The lines of the change when the comment was written; `None` for a change
    /// that has no lines.
    pub lines: Option<LineRange>,
    /// The comment.
    pub text: String,
    /// When it was written.
    pub time: Millis,
    /// The sessions that receive it.
    pub to: Vec<CommentTo>,
}

/// A session that receives a comment.
#[apply(answer!)]
pub struct CommentTo {
    /// The session. The comment on a sub-agent's change goes to its parent.
    pub session: SessionId,
    /// The session's label; `None` if it has none (SES-2).
    pub label: Option<String>,
    /// Whether the session has received the comment.
    pub state: CommentState,
    /// When the session received it; `None` if it has not.
    pub told: Option<Millis>,
}

/// Whether a session has received a comment.
#[apply(choice!)]
pub enum CommentState {
    /// It receives the comment with its next prompt.
    Waiting,
    /// Its agent takes no text with a prompt. It receives the comment with the
    /// next event that can carry text.
    WaitingForEvent,
    /// The session has ended. It receives the comment if it is continued.
    Ended,
    /// It has received the comment.
    Told,
}
