//! What facts contain: contents, versions, and beginnings of edits and command
//! windows.

use crate::globs::Globs;
use touchmark_proto::{
    Author, Evidence, FileMode, Hash, HashOrAbsent, Millis, RelPath, SessionId, VersionKind,
};

/// How git brought the content of a version (HIST-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carriage {
    /// The work tree went from one whole state to another: by a switch, pull,
    /// merge, rebase, cherry-pick, stash or pop.
    Carried,
    /// As [`Carried`](Self::Carried), but the content before was not committed:
    /// it was stashed, or destroyed by a forced switch.
    Wiped,
    /// The file alone was taken back to a content that git has, as by
    /// `git checkout -- f`, a reset or a revert, or it was copied. That is a
    /// decision of the author of the version.
    TakenBack,
    /// It cannot be told whether git or the file had the content first.
    Unclear,
}

/// The content of a path at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The hash of the content; `None` if there was no file.
    pub hash: Option<Hash>,
    /// The size in bytes.
    pub size: u64,
    /// The number of lines.
    pub lines: u32,
    /// The file's modification time, in milliseconds since 1970.
    pub mtime_ms: Millis,
    /// Its kind and permissions, where they are known. The content of a symlink
    /// is the name that it leads to (SCOPE-7).
    pub mode: Option<FileMode>,
    /// The user to whom the file belongs, if that is another one than the
    /// daemon's, and a read has told it.
    pub owner: Option<u32>,
}

impl Held {
    /// The value for no file.
    pub const ABSENT: Self = Self {
        hash: None,
        size: 0,
        lines: 0,
        mtime_ms: 0,
        mode: None,
        owner: None,
    };

    /// Returns whether it is known to be a symlink.
    pub fn is_link(&self) -> bool {
        self.mode.is_some_and(FileMode::is_link)
    }

    /// Returns the value for a symlink that contains `to`.
    pub(crate) fn link(to: &[u8]) -> Self {
        Self {
            hash: Some(Hash::of(to)),
            size: to.len() as u64,
            mode: Some(FileMode::LINK),
            ..Self::ABSENT
        }
    }
}

/// One version, as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionFact {
    /// The path of the version.
    pub path: RelPath,
    /// Whether the path was created, modified, deleted or renamed.
    pub kind: VersionKind,
    /// The previous name, if the file was renamed.
    pub from: Option<RelPath>,
    /// The new content.
    pub held: Held,
    /// Who wrote the version.
    pub author: Author,
    /// The evidence for the author.
    pub evidence: Evidence,
    /// The number of the version that this one corrects; `None` for a new
    /// version.
    pub amends: Option<u64>,
    /// The edit that the version is attributed to, or may be. It is provisional
    /// while that edit is open and the evidence is `marked` or `unmarked`.
    pub edit: Option<u64>,
    /// A session declared the content, but the daemon never read it from the
    /// disk.
    pub unobserved: bool,
    /// The session declared the content only after it was written.
    pub late: bool,
    /// A formatter wrote the version (ATTR-17).
    pub formatted: bool,
    /// The sessions whose command windows or marks covered the version.
    pub candidates: Vec<SessionId>,
    /// The previous content, for line counts; `None` for no file.
    pub before: Option<Hash>,
    /// The command whose window was open when it was written (ATTR-6).
    pub command: Option<u64>,
    /// The mode before, where it is known to have been another.
    pub mode_before: Option<FileMode>,
    /// The name behind the symlinks on the path; `None` if there were none, or
    /// in a correction.
    pub real: Option<RelPath>,
    /// Git brought it, together with many others (SCOPE-9). `false` also if that
    /// was not looked at.
    pub by_git: bool,
}

impl VersionFact {
    /// Returns a version with the given values and nothing else set: the
    /// previous content is no file.
    pub fn new(
        path: RelPath,
        kind: VersionKind,
        held: Held,
        author: Author,
        evidence: Evidence,
    ) -> Self {
        Self {
            path,
            kind,
            from: None,
            held,
            author,
            evidence,
            amends: None,
            edit: None,
            unobserved: false,
            late: false,
            formatted: false,
            candidates: Vec::new(),
            before: None,
            command: None,
            mode_before: None,
            real: None,
            by_git: false,
        }
    }

    /// Returns whether the content before the version is not known (SCOPE-3).
    pub fn is_before_unknown(&self) -> bool {
        let changes = matches!(self.kind, VersionKind::Modified | VersionKind::Deleted);
        changes && self.before.is_none() && self.amends.is_none()
    }
}

/// An edit, as it was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditFact {
    /// The edit's number; `e<number>` on the wire.
    pub edit: u64,
    /// The session that began the edit.
    pub session: SessionId,
    /// The agent's name for the tool call; `None` if it was not named.
    pub call: Option<String>,
    /// The files, in the order in which the request named them.
    pub files: Vec<EditFileFact>,
    /// When the edit lapses.
    pub deadline: Millis,
    /// A one-call mark: the first closed change ends it (ATTR-8).
    pub one_shot: bool,
    /// The connection whose end ends the edit; `None` if the edit is not bound.
    /// Without meaning after a restart.
    pub bound: Option<u64>,
    /// The name of the tool that edits.
    pub tool: Option<String>,
    /// The agent's step; `None` if it named none.
    pub step: Option<u64>,
}

/// A command window, as it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandFact {
    /// The command's number; `c<number>` on the wire.
    pub command: u64,
    /// The session that opened the window.
    pub session: SessionId,
    /// The agent's name for the tool call; `None` if it was not named.
    pub call: Option<String>,
    /// The command line, for people to read.
    pub label: Option<String>,
    /// The globs of the paths that the window covers.
    pub globs: Globs,
    /// When the window ends without a request.
    pub deadline: Millis,
    /// The connection whose end ends the window; `None` if the window is not
    /// bound. Without meaning after a restart.
    pub bound: Option<u64>,
    /// The process whose end ends the window.
    pub pid: Option<u32>,
    /// The command is a formatter (ATTR-17).
    pub formatter: bool,
    /// The window covers untracked files too (SCOPE-1).
    pub workspace: bool,
    /// The branch that was checked out when the window opened; `None` if there
    /// was none.
    pub branch: Option<String>,
}

/// One file of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditFileFact {
    /// The file's path.
    pub path: RelPath,
    /// The content that the edit declares the file will have; `None` if it
    /// declares nothing.
    pub expect: Option<HashOrAbsent>,
    /// The content when the edit began; `None` for no file. An `expect` never
    /// matches it.
    pub began: Option<Hash>,
    /// The content that the edit was computed from.
    pub base: Option<Hash>,
}
