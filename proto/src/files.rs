//! Requests about what sessions have read.

use serde::{Deserialize, Serialize};

use crate::{
    Author, Change, ClientPath, Clock, FileState, Hash, LineRange, Millis, RelPath, SessionId,
    State, Version,
};

/// How a file's content came into the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum Source {
    /// A tool read the file.
    ReadTool,
    /// The session wrote the file.
    AgentEdited,
    /// Another writer changed the file.
    UserEdited,
    /// A message named the file.
    FileMentioned,
    /// A tool read the file, but which content it read is not known (SEEN-9).
    ReadMissed,
}

/// Records a read, and checks whether it repeats an earlier one.
#[apply(request!)]
pub struct FileRead {
    /// The session that reads, by its id or label.
    pub session: SessionId,
    /// The file.
    pub path: ClientPath,
    /// The hash of the whole file whose bytes entered the context (SEEN-1). If
    /// `None`, the daemon hashes what it finds on disk.
    pub hash: Option<Hash>,
    /// The lines that were read; `None` means the whole file.
    pub range: Option<LineRange>,
    /// The number of lines of the whole file, as the client counted them.
    pub total_lines: Option<u32>,
    /// The text that was read, if the client passes it on.
    pub text: Option<String>,
    /// The agent's number for its current step, if it has one. touchmark only
    /// stores it.
    pub step: Option<u64>,
    /// How the content came into the context; default `read_tool`.
    pub source: Option<Source>,
    /// Whether to answer with the state as of now, after a fence (SYNC-1);
    /// default true.
    pub sync: Option<bool>,
    /// Whether to read and hash the file for this answer (SYNC-4); default
    /// false.
    pub verify: Option<bool>,
}

/// How a read relates to the session's earlier reads (SEEN-4).
#[apply(choice!)]
pub enum Verdict {
    /// The session had not read the file.
    First,
    /// The requested lines of the current content are in the session's context
    /// already.
    Repeat,
    /// The session has read other lines of the current content.
    Extends,
    /// The content differs from what the session read before.
    Changed,
}

/// A read, as it was recorded.
#[apply(answer!)]
pub struct FileReadResult {
    /// How the read relates to earlier ones.
    pub verdict: Verdict,
    /// The number of times the session has read the file.
    pub read_count: u32,
    /// The hash of the content that was recorded.
    pub hash: Option<Hash>,
    /// The number of lines of the content that was recorded.
    pub line_count: u32,
    /// One sentence for the model: it replaces the text of a repeat, or reports
    /// a change. `None` if there is nothing to report.
    pub message: Option<String>,
    /// The authors of the changes since the session's earlier read.
    pub changed_by: Option<Vec<Author>>,
    /// When the daemon saw the first change since the session's earlier read.
    pub since: Option<Millis>,
    /// The changes since the session's earlier read, folded into one.
    pub change: Option<Change>,
}

/// Reads a file for a session and records what it returns.
#[apply(request!)]
pub struct FileReadText {
    /// The session that reads, by its id or label.
    pub session: SessionId,
    /// The file.
    pub path: ClientPath,
    /// The lines to read; `None` means the whole file.
    pub range: Option<LineRange>,
    /// The agent's number for its current step, if it has one. touchmark only
    /// stores it.
    pub step: Option<u64>,
    /// Whether to return the text even for a repeat; default false.
    #[serde(default)]
    pub force: bool,
    /// Whether to return the text of a file in another encoding than UTF-8,
    /// with the encoding's name in `charset`; default false: such a file is
    /// returned as base64.
    #[serde(default)]
    pub decode: bool,
    /// Whether to record the read; default true.
    pub track: Option<bool>,
    /// Whether to answer with the state as of now, after a fence (SYNC-1);
    /// default true.
    pub sync: Option<bool>,
    /// Whether to read and hash the file for this answer (SYNC-4); default
    /// false.
    pub verify: Option<bool>,
}

/// How bytes are encoded as a string in JSON.
#[apply(choice!)]
pub enum TextEncoding {
    /// As they are: the bytes are UTF-8.
    Utf8,
    /// As base64: the bytes are not UTF-8.
    Base64,
}

/// A file's text.
#[apply(answer!)]
pub struct FileText {
    /// How the read relates to earlier ones.
    pub verdict: Verdict,
    /// The text; `None` for a repeat.
    pub text: Option<String>,
    /// One sentence for the model: it replaces the text of a repeat, or reports
    /// a change. `None` if there is nothing to report.
    pub message: Option<String>,
    /// The hash of the whole file.
    pub hash: Option<Hash>,
    /// The number of lines of the whole file.
    pub line_count: u32,
    /// The lines that are returned.
    pub range: Option<LineRange>,
    /// Whether the text was cut because it does not fit one answer. Read the
    /// remaining lines by `range`.
    pub truncated: bool,
    /// The encoding of `text`.
    pub encoding: TextEncoding,
    /// The encoding in which the file stores the text, if it was decoded
    /// (`UTF-16LE`, `windows-1252`). Without a byte order mark it is a guess.
    pub charset: Option<String>,
}

/// Records that a message named a file. The file is tracked from then on.
#[apply(request!)]
pub struct FileMention {
    /// The session whose context it is, by its id or label.
    pub session: SessionId,
    /// The file.
    pub path: ClientPath,
    /// The hash of the whole file, if its bytes entered the context.
    pub hash: Option<Hash>,
    /// The lines that entered the context; `None` means all.
    pub range: Option<LineRange>,
    /// The agent's number for its current step, if it has one. touchmark only
    /// stores it.
    pub step: Option<u64>,
    /// Whether the session read the file in a way that touchmark missed, so
    /// that the content it saw is not known. The file is `unknown` to the
    /// session from then on (SEEN-9). Not allowed together with `hash`. Default
    /// false.
    #[serde(default)]
    pub missed: bool,
}

/// Forgets what a session has read: its next read is `first` and returns the
/// full text. The session may still edit the file (SEEN-1).
#[apply(request!)]
pub struct FileInvalidate {
    /// The session, by its id or label.
    pub session: SessionId,
    /// The file; `None` means all files.
    pub path: Option<ClientPath>,
}

/// Requests the state of a session's copies of files.
#[apply(request!)]
pub struct FileStatus {
    /// The session, by its id or label.
    pub session: SessionId,
    /// The files; `None` means all that the session tracks.
    #[serde(default)]
    pub paths: Option<Vec<ClientPath>>,
    /// Only files in these states; empty means all states.
    #[serde(default)]
    pub state: Vec<State>,
    /// Whether to answer with the state as of now, after a fence (SYNC-1);
    /// default true.
    pub sync: Option<bool>,
    /// Whether to read and hash every path that the request covers first
    /// (SYNC-4); default false.
    pub verify: Option<bool>,
    /// The maximum number of rows to return; default 1,000 (LIM-2).
    pub limit: Option<u32>,
    /// The `more` of the previous answer, to continue after it. `None` starts
    /// at the beginning.
    pub cursor: Option<String>,
}

/// The states of files.
#[apply(answer!)]
pub struct FileStates {
    /// One row per file, in the order of the request, or by path.
    pub files: Vec<FileState>,
    /// The `cursor` of the next request; `None` if there are no more rows.
    pub more: Option<String>,
    /// Paths that could not be read in time; `None` if there are none. The
    /// answer describes their previous state. Repeat the request later
    /// (LOSS-4).
    pub pending: Option<Vec<RelPath>>,
}

/// Lists a session's records of files.
#[apply(request!)]
pub struct FileList {
    /// The session, by its id or label.
    pub session: SessionId,
    /// Whether to list superseded records as well; default false.
    #[serde(default)]
    pub all: bool,
    /// Whether to answer with the state as of now, after a fence (SYNC-1);
    /// default true.
    pub sync: Option<bool>,
    /// Whether to read and hash every path that the request covers first
    /// (SYNC-4); default false.
    pub verify: Option<bool>,
    /// The maximum number of rows to return; default 1,000 (LIM-2).
    pub limit: Option<u32>,
    /// The `more` of the previous answer, to continue after it. `None` starts
    /// at the beginning.
    pub cursor: Option<String>,
}

/// Whether a record is the newest of its path.
#[apply(choice!)]
#[derive(PartialOrd, Ord, Hash)]
pub enum RecordState {
    /// The newest record of its path.
    Active,
    /// A newer record has replaced it.
    Stale,
}

/// One record of one file in one session's context.
#[apply(answer!)]
pub struct FileRecord {
    /// The file's path.
    pub path: RelPath,
    /// Whether the record is the newest of its path.
    pub record_state: RecordState,
    /// How the file came into the context.
    pub record_source: Source,
    /// When the session last read the file; `None` if it has not.
    pub agent_read_date: Option<Millis>,
    /// When the session last wrote the file; `None` if it has not.
    pub agent_edit_date: Option<Millis>,
    /// When another writer last changed the file; `None` if none has.
    pub user_edit_date: Option<Millis>,
    /// The number of times the session has read the file.
    pub read_count: u32,
    /// The agent's number for the step of its last access.
    pub last_step: Option<u64>,
    /// When the session last accessed the file.
    pub last_access_time: Millis,
    /// The number of lines of the content that the session saw.
    pub line_count: u32,
    /// The first 200 characters of the content that the session saw; empty for
    /// secrets (SEC-3).
    pub preview: String,
    /// Whether the session wrote the file.
    pub was_modified: bool,
}

/// A list of records of files.
#[apply(answer!)]
pub struct FileRecords {
    /// The records; one active record per path.
    pub files: Vec<FileRecord>,
    /// The `cursor` of the next request; `None` if there are no more rows.
    pub more: Option<String>,
    /// Files that could not be read in time; `None` if there are none. The
    /// answer describes their previous state (LOSS-4).
    pub pending: Option<Vec<RelPath>>,
}

/// Lists all versions of one path.
#[apply(request!)]
pub struct FileHistory {
    /// The file.
    pub path: ClientPath,
    /// The maximum number of rows to return; default 1,000 (LIM-2).
    pub limit: Option<u32>,
    /// Only versions older than this clock; `None` starts at the newest.
    pub before: Option<Clock>,
    /// Whether to answer with the state as of now, after a fence (SYNC-1);
    /// default true.
    pub sync: Option<bool>,
    /// Whether to read and hash the file for this answer (SYNC-4); default
    /// false.
    pub verify: Option<bool>,
}

/// A list of versions of one path.
#[apply(answer!)]
pub struct Versions {
    /// The versions, newest first; the baseline is last. Corrections are rows
    /// of their own.
    pub versions: Vec<Version>,
    /// The value of `before` for the next request; `None` if there are no more
    /// rows.
    pub more: Option<Clock>,
}

/// Stops tracking a path for a session.
#[apply(request!)]
pub struct FileUntrack {
    /// The session, by its id or label.
    pub session: SessionId,
    /// The file.
    pub path: ClientPath,
}

/// Lists the files that a session accessed recently, counted in its steps.
#[apply(request!)]
pub struct FileRecent {
    /// The session, by its id or label.
    pub session: SessionId,
    /// The agent's number for its current step.
    pub step: u64,
    /// The highest number of steps since the last access that counts as recent.
    pub max_age: u64,
    /// Whether to answer with the state as of now, after a fence (SYNC-1);
    /// default true.
    pub sync: Option<bool>,
    /// Whether to read and hash every path that the request covers first
    /// (SYNC-4); default false.
    pub verify: Option<bool>,
    /// The maximum number of rows to return; default 1,000 (LIM-2).
    pub limit: Option<u32>,
    /// The `more` of the previous answer, to continue after it. `None` starts
    /// at the beginning.
    pub cursor: Option<String>,
}

/// Checks whether a session last accessed a file too many steps ago. This does
/// not depend on the file's content.
#[apply(request!)]
pub struct FileIsStale {
    /// The session, by its id or label.
    pub session: SessionId,
    /// The file.
    pub path: ClientPath,
    /// The agent's number for its current step.
    pub step: u64,
    /// The highest number of steps since the last access that is not stale.
    pub max_age: u64,
}

/// The number of steps since a file was accessed.
#[apply(answer!)]
#[derive(Copy)]
pub struct FileAge {
    /// Whether the last access was more than `max_age` steps ago, or there was
    /// none.
    pub stale: bool,
    /// The number of steps since the last access; `null` if the session never
    /// named a step for the file.
    pub age: Option<u64>,
}

/// Returns the current state of a file, to compare with later.
#[apply(request!)]
pub struct FileSnapshot {
    /// The file.
    pub path: ClientPath,
}

/// The state of a file at one moment.
#[apply(answer!)]
pub struct Snapshot {
    /// The file.
    pub path: ClientPath,
    /// The file's modification time, in milliseconds since 1970.
    pub mtime_ms: Millis,
    /// The file's size in bytes.
    pub size: u64,
    /// The hash of the file's content; `null` if there was no file.
    pub hash: Option<Hash>,
}

/// Compares a file with a snapshot of it.
#[apply(request!)]
pub struct FileDetect {
    /// The snapshot, as `file/snapshot` returned it.
    pub snapshot: Snapshot,
}

/// Which properties differ from a snapshot.
#[apply(answer!)]
#[derive(Copy)]
pub struct SnapshotChanges {
    /// Whether the modification time differs.
    pub mtime_changed: bool,
    /// Whether the size differs.
    pub size_changed: bool,
    /// Whether the content differs.
    pub content_changed: bool,
}

/// The result of comparing a file with a snapshot.
#[apply(answer!)]
#[derive(Copy)]
pub struct SnapshotCompared {
    /// Whether the content differs. Neither the modification time nor the size
    /// decides it.
    pub modified: bool,
    /// Which properties differ.
    pub changes: SnapshotChanges,
}
