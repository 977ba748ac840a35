//! Requests that show a file as it was, or restore it (HIST).

use crate::at::At;
use crate::files::TextEncoding;
use crate::{
    Author, ClientPath, Clock, Evidence, Hash, LineCounts, LineRange, Millis, RelPath, Version,
    VersionKind,
};

/// Requests the content of a file at a version.
#[apply(request!)]
pub struct FileContent {
    /// The file.
    pub path: ClientPath,
    /// The version; `None` means the file's current content.
    pub at: Option<At>,
}

/// The content of a file at a version.
#[apply(answer!)]
pub struct ContentAt {
    /// The file.
    pub path: RelPath,
    /// The version's clock. `None` for a file that was never tracked, and for a
    /// content that a session saw but no version has.
    pub clock: Option<Clock>,
    /// The whole content.
    pub text: String,
    /// The encoding of `text`.
    pub encoding: TextEncoding,
    /// The hash of the content.
    pub hash: Hash,
    /// The size of the content in bytes.
    pub size: u64,
}

/// Requests the differences between two versions, of one file or of several.
#[apply(request!)]
pub struct FileDiff {
    /// One file, whose hunks are returned in the answer's `hunks`. Not allowed
    /// together with `paths`.
    pub path: Option<ClientPath>,
    /// Files, and directories for all files below them. Without `paths` and
    /// `path`: all files that changed.
    #[serde(default)]
    pub paths: Option<Vec<ClientPath>>,
    /// The older version.
    pub from: At,
    /// The newer version; `None` means the file's current content.
    pub to: Option<At>,
    /// The number of unchanged lines around each change; default 3.
    pub context: Option<u32>,
    /// The maximum number of files to return (LIM-2).
    pub limit: Option<u32>,
    /// The `more` of the previous answer, to continue after it. `None` starts
    /// at the beginning.
    pub cursor: Option<String>,
}

/// Which of two versions have a line.
#[apply(choice!)]
pub enum LineKind {
    /// The line is in both versions.
    Context,
    /// The line is only in the newer version.
    Added,
    /// The line is only in the older version.
    Removed,
}

/// A line of a difference.
#[apply(answer!)]
pub struct DiffLine {
    /// Which of the two versions have the line.
    pub kind: LineKind,
    /// The line without its line feed. Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The line's bytes as base64, if they are not UTF-8; else `None`.
    pub base64: Option<String>,
    /// Whether the line is the last of the file and has no line feed.
    pub no_newline: Option<bool>,
    /// The author who added the line or, for a removed line, removed it.
    pub author: Author,
    /// When the daemon saw the version that added or removed the line.
    pub time: Millis,
    /// The evidence for the author.
    pub evidence: Evidence,
    /// The version that added or removed the line; `None` in a file that was
    /// never tracked.
    pub clock: Option<Clock>,
}

/// A group of changed lines with the unchanged lines around them.
#[apply(answer!)]
pub struct DiffHunk {
    /// The number of the hunk's first line in the older version. If the hunk
    /// has no line there: the number of the line before it.
    pub old_start: u32,
    /// The number of the hunk's lines in the older version.
    pub old_lines: u32,
    /// The number of the hunk's first line in the newer version. If the hunk
    /// has no line there: the number of the line before it.
    pub new_start: u32,
    /// The number of the hunk's lines in the newer version.
    pub new_lines: u32,
    /// The lines in the order of the file. In each change the removed lines are
    /// first.
    pub lines: Vec<DiffLine>,
}

/// The changes in one file.
#[apply(answer!)]
pub struct FileDifference {
    /// The file.
    pub path: RelPath,
    /// The overall change from the older version to the newer.
    pub kind: VersionKind,
    /// The clock of the older version; `None` if the older content is no
    /// version.
    pub from_clock: Option<Clock>,
    /// The hash of the older content; null if there was no file.
    pub from_hash: Option<Hash>,
    /// The clock of the newer version; `None` if the newer content is no
    /// version.
    pub to_clock: Option<Clock>,
    /// The hash of the newer content; null if there is no file.
    pub to_hash: Option<Hash>,
    /// Lines added and removed; `None` if a content is no text, or is not kept.
    pub lines: Option<LineCounts>,
    /// Whether a content is no text; there are no hunks then.
    pub binary: Option<bool>,
    /// Why there are no hunks: a content is no longer kept, or was never kept.
    pub cause: Option<String>,
    /// The changes. `None` also if the request named one `path`: they are in
    /// the answer's `hunks` then.
    pub hunks: Option<Vec<DiffHunk>>,
}

/// The differences between two versions.
#[apply(answer!)]
pub struct FileDiffs {
    /// Each file that differs, by path.
    pub files: Vec<FileDifference>,
    /// The changes in the one `path` that the request named; `None` for
    /// `paths`.
    pub hunks: Option<Vec<DiffHunk>>,
    /// The `cursor` of the next request; `None` if there are no more rows.
    pub more: Option<String>,
}

/// Requests the author of each line of a file.
#[apply(request!)]
pub struct FileBlame {
    /// The file.
    pub path: ClientPath,
    /// The version; `None` means the file's current content.
    pub at: Option<At>,
    /// Only these lines; `None` means all.
    pub range: Option<LineRange>,
    /// Whether a line of which only the white space changed is by the author
    /// who changed it; `None` means no.
    pub exact: Option<bool>,
    /// Whether git is asked for the commits of lines whose author the history
    /// does not know (HIST-11); `None` means yes.
    pub commits: Option<bool>,
}

/// The commit that a line belongs to.
#[apply(answer!)]
pub struct LineCommit {
    /// The commit's full id, in hex digits.
    pub id: String,
    /// The name of its author, as the commit has it: at most 200 characters of
    /// any kind. `None` if the repository's history ends at this commit (a
    /// shallow clone): an earlier one may have added the line.
    pub author: Option<String>,
}

/// A line with its author.
#[apply(answer!)]
pub struct BlameLine {
    /// The line without its line feed. Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The line's bytes as base64, if they are not UTF-8; else `None`.
    pub base64: Option<String>,
    /// The author of the line. Where the history does not know it: `committed`
    /// if a commit of the repository has the line, or the agent that a note of
    /// the commit names; `unknown` if no commit has it. The history
    /// does not know it if the line is older than the first version on record,
    /// if git brought it, or if versions of several authors count as one
    /// because not all are kept.
    pub author: Author,
    /// When the daemon saw the version that added the line. With `commit`: when
    /// the author of the commit made it first.
    pub time: Millis,
    /// The evidence for the author.
    pub evidence: Evidence,
    /// The version that added the line; `None` in a file that was never
    /// tracked.
    pub clock: Option<Clock>,
    /// The id of the edit that wrote the line, if one did.
    pub edit: Option<String>,
    /// The id of the command in whose window the line was written, if there was
    /// one.
    pub command: Option<String>,
    /// The commit that the line belongs to; `None` if the history has the
    /// author, or if no commit is known.
    pub commit: Option<LineCommit>,
}

impl BlameLine {
    /// Returns whether the author is only likely (ATTR-6). Without a command the line
    /// is a formatter's that an editor has reported (ATTR-17).
    pub fn is_likely(&self) -> bool {
        self.evidence == Evidence::Command && self.command.is_some()
    }
}

/// The authors of a file's lines.
#[apply(answer!)]
pub struct Blame {
    /// The file.
    pub path: RelPath,
    /// The version's clock; `None` for a file that was never tracked.
    pub clock: Option<Clock>,
    /// The hash of the version's content.
    pub hash: Hash,
    /// The line number of the first entry of `lines`.
    pub start: u32,
    /// One entry per line.
    pub lines: Vec<BlameLine>,
    /// Why git did not say which commits lines belong to. `None` if it was
    /// asked and answered, if no line needed it, or if the file is in no
    /// repository that is trusted.
    pub cause: Option<String>,
}

/// Lists versions of all files, or of some, newest first.
#[apply(request!)]
pub struct FileLog {
    /// Files, and directories for all files below them; `None` means all files.
    #[serde(default)]
    pub paths: Option<Vec<ClientPath>>,
    /// Only versions after this moment: a time, a clock or a checkpoint.
    pub since: Option<At>,
    /// Only versions before this moment, or at it.
    pub until: Option<At>,
    /// Whether to count the lines that each version added and removed; default
    /// false.
    #[serde(default)]
    pub lines: bool,
    /// The maximum number of rows to return; default 1,000 (LIM-2).
    pub limit: Option<u32>,
    /// Only versions older than this clock; `None` starts at the newest.
    pub before: Option<Clock>,
}

/// A version in the list of versions.
#[apply(answer!)]
pub struct LogEntry {
    /// The version, with the author that its newest correction names.
    pub version: Version,
    /// Lines added and removed, if they were requested and both texts are kept.
    pub lines: Option<LineCounts>,
}

/// A list of versions.
#[apply(answer!)]
pub struct LogEntries {
    /// The versions, newest first, without baselines.
    pub entries: Vec<LogEntry>,
    /// The value of `before` for the next request; `None` if there are no more
    /// rows. The next list may be empty.
    pub more: Option<Clock>,
}

/// Restores a file to a version. Its current content is kept first. The
/// restored content is a version of the user's (HIST-4).
#[apply(request!)]
pub struct FileRestore {
    /// The file.
    pub path: ClientPath,
    /// The version. If there was no file at that version, the file is removed.
    pub at: At,
    /// Whether to write also where the present content cannot be kept and so
    /// cannot be brought back (HIST-4); default false.
    #[serde(default)]
    pub no_redo: bool,
    /// Whether to put back only the lines of the version that the file lacks,
    /// and to take nothing away; default false. Of a version that a session
    /// replaced unseen, these are the lines that are lost (ATTR-10).
    #[serde(default)]
    pub missing: bool,
}

/// The result of restoring a file.
#[apply(choice!)]
pub enum Restoration {
    /// The file has the content of the requested version again, or the lines of
    /// it that were missing.
    Restored,
    /// The file was removed, since there was no file at the requested version.
    Removed,
    /// The file already had the content of that version, or nothing of it was
    /// missing.
    Unchanged,
}

/// A file that was restored.
#[apply(answer!)]
pub struct RestoredFile {
    /// The file.
    pub path: RelPath,
    /// The result.
    pub outcome: Restoration,
    /// The version that the file has again; `None` for a content that a session
    /// saw but no version has.
    pub clock: Option<Clock>,
    /// The number of places of the file that changed; 0 if they cannot be
    /// counted.
    pub hunks: u32,
    /// Absolute paths of the copies of the previous content (`recovery/list`).
    pub recovered: Vec<String>,
}

/// The result of `file/restore`.
#[apply(answer!)]
pub struct Restored {
    /// The file that was restored; always one.
    pub files: Vec<RestoredFile>,
}
