//! A version as the state keeps it. There are many, so rarely used fields are
//! in a separate allocation.

use touchmark_proto::{
    Author, AuthorKind, Evidence, FileMode, Hash, Millis, RelPath, SessionId, VersionKind,
};

use crate::ledger::record::{Held, VersionFact};
use crate::ranges::RangeSet;

/// A version with its corrections applied, or several versions that were merged
/// into one (see `settle`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptVersion {
    /// The number of its fact; for merged versions, of the newest.
    pub n: u64,
    /// When it was recorded; for merged versions, when the newest was.
    pub time: Millis,
    /// When the oldest of the merged versions was recorded.
    pub first_time: Millis,
    /// How many versions it stands for; 1 unless versions were merged.
    pub count: u32,
    /// The number of lines.
    pub(crate) lines: u32,
    /// The size in bytes.
    pub size: u64,
    /// The file's modification time, in milliseconds since 1970.
    pub(crate) mtime_ms: Millis,
    pub(crate) mode: Option<FileMode>,
    /// The content; `None` for no file.
    pub hash: Option<Hash>,
    /// The previous content; for merged versions, the one before the oldest.
    /// `None` for no file.
    pub before: Option<Hash>,
    /// Whether the path was created, modified, deleted or renamed.
    pub kind: VersionKind,
    pub(crate) author: AuthorKind,
    /// The evidence for the author.
    pub evidence: Evidence,
    /// The version was replaced before the session that did so had seen it.
    /// Whether lines of it are lost, the contents say (ATTR-10).
    pub lost: bool,
    /// A session declared the content, but the daemon never read it from the
    /// disk.
    pub unobserved: bool,
    /// A session declared the content only after it was written.
    pub late: bool,
    /// A formatter wrote the version (ATTR-17).
    pub formatted: bool,
    pub(crate) details: Option<Box<VersionDetails>>,
}

/// Fields that are empty in a plain version by the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VersionDetails {
    pub(crate) from: Option<RelPath>,
    pub(crate) session: Option<SessionId>,
    pub(crate) edit: Option<u64>,
    pub(crate) candidates: Vec<SessionId>,
    pub(crate) command: Option<u64>,
    pub(crate) mode_before: Option<FileMode>,
    pub(crate) replaced: Option<Replaced>,
}

/// How a version was replaced by a session that had not seen it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The version that replaced it.
    pub by: u64,
    /// The content of that version; `None` for no file.
    pub content: Option<Hash>,
    /// The contents that the session had seen by then, with the lines of each.
    pub seen: Vec<(Hash, RangeSet)>,
}

impl KeptVersion {
    /// Returns the version that a fact records.
    pub(super) fn new(n: u64, time: Millis, fact: &VersionFact) -> Self {
        let mut kept = Self {
            n,
            time,
            first_time: time,
            count: 1,
            lines: fact.held.lines,
            size: fact.held.size,
            mtime_ms: fact.held.mtime_ms,
            mode: fact.held.mode,
            hash: fact.held.hash,
            before: fact.before,
            kind: fact.kind,
            author: fact.author.kind,
            evidence: fact.evidence,
            lost: false,
            unobserved: fact.unobserved,
            late: false,
            formatted: false,
            details: None,
        };
        kept.attribute(fact);
        kept
    }

    /// Takes the author and the evidence from a fact.
    pub(super) fn attribute(&mut self, fact: &VersionFact) {
        self.author = fact.author.kind;
        self.evidence = fact.evidence;
        self.late = fact.late;
        self.formatted = fact.formatted;
        let details = VersionDetails {
            from: self.from().or(fact.from.as_ref()).cloned(),
            session: fact.author.session.clone(),
            edit: fact.edit,
            candidates: fact.candidates.clone(),
            command: fact.command,
            // A correction does not say it again.
            mode_before: self.mode_before().or(fact.mode_before),
            replaced: self.replaced().cloned(),
        };
        self.details = (details != VersionDetails::default()).then(|| Box::new(details));
    }

    /// Returns the previous name, or `None` if the version is no rename.
    pub fn from(&self) -> Option<&RelPath> {
        self.details.as_ref()?.from.as_ref()
    }

    /// Returns the session that wrote it, or `None` if no session did.
    pub fn session(&self) -> Option<&SessionId> {
        self.details.as_ref()?.session.as_ref()
    }

    /// Returns the author, without a label.
    pub fn author(&self) -> Author {
        Author {
            kind: self.author,
            session: self.session().cloned(),
            label: None,
        }
    }

    /// Returns whether an agent, the user or an unknown author wrote it.
    pub fn author_kind(&self) -> AuthorKind {
        self.author
    }

    /// Returns the author in a form that can be compared.
    pub(super) fn writer(&self) -> (AuthorKind, Option<&SessionId>) {
        (self.author, self.session())
    }

    /// Returns whether a given session wrote the version.
    pub fn is_by(&self, session: &SessionId) -> bool {
        self.session() == Some(session)
    }

    /// Returns whether it is a session's own declared or marked write.
    pub(crate) fn is_edit_of(&self, session: &SessionId) -> bool {
        let is_command = self.evidence.is_of_command();
        self.author == AuthorKind::Agent && self.is_by(session) && !is_command
    }

    /// Returns the edit that it is attributed to, or `None`.
    pub fn edit(&self) -> Option<u64> {
        self.details.as_ref()?.edit
    }

    /// Returns the command in whose window it was written, or `None`.
    pub fn command(&self) -> Option<u64> {
        self.details.as_ref()?.command
    }

    /// The mode before, where it is known to have been another.
    pub fn mode_before(&self) -> Option<FileMode> {
        self.details.as_ref()?.mode_before
    }

    /// Returns how a session replaced it that had not seen it; `None` if none
    /// did, or if an older touchmark recorded it.
    pub fn replaced(&self) -> Option<&Replaced> {
        self.details.as_ref()?.replaced.as_ref()
    }

    /// Removes a session that turned out not to have written it from the
    /// candidates.
    pub(super) fn rule_out(&mut self, session: &SessionId) {
        let author = self.session().cloned();
        let Some(details) = &mut self.details else {
            return;
        };
        details.candidates.retain(|candidate| candidate != session);
        // If only the author is left, there is nothing to choose from.
        if details.candidates.len() == 1 && details.candidates.first() == author.as_ref() {
            details.candidates.clear();
        }
    }

    /// Returns the sessions whose command windows or marks covered it.
    pub fn candidates(&self) -> &[SessionId] {
        self.details
            .as_ref()
            .map_or(&[], |details| &details.candidates)
    }

    /// Returns the version as a fact about `path`.
    pub fn fact(&self, path: &RelPath) -> VersionFact {
        VersionFact {
            path: path.clone(),
            kind: self.kind,
            from: self.from().cloned(),
            held: Held {
                hash: self.hash,
                size: self.size,
                lines: self.lines,
                mtime_ms: self.mtime_ms,
                mode: self.mode,
                ..Held::ABSENT
            },
            author: self.author(),
            evidence: self.evidence,
            amends: None,
            edit: self.edit(),
            unobserved: self.unobserved,
            late: self.late,
            formatted: self.formatted,
            candidates: self.candidates().to_vec(),
            before: self.before,
            command: self.command(),
            mode_before: self.mode_before(),
            // The log has both. A correction does not say them again.
            real: None,
            by_git: false,
        }
    }

    /// Returns whether two versions differ only in contents and times, so that
    /// they may be merged.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let plain = |kept: &Self| {
            let bare = kept.from().is_none() && kept.candidates().is_empty();
            bare && !kept.lost && !kept.unobserved
        };
        plain(self)
            && plain(other)
            && (self.writer(), self.evidence) == (other.writer(), other.evidence)
            && self.formatted == other.formatted
    }

    /// Merges with an older version that [is like](Self::is_like) it and
    /// directly precedes it.
    pub(super) fn take_in(&mut self, older: &Self) {
        self.first_time = older.first_time;
        self.count = self.count.saturating_add(older.count);
        self.before = older.before;
    }
}
