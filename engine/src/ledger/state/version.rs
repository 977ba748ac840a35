//! A version as the state keeps it. There are many: what few of them have
//! stands aside.

use touchmark_proto::{
    Author, AuthorKind, Evidence, Hash, Millis, RelPath, SessionId, VersionKind,
};

use crate::ledger::record::{Held, VersionFact};

/// A version as it is known now, corrections included; or several that
/// nobody can tell apart any more (see `settle`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptVersion {
    /// Its fact; of several, the newest.
    pub n: u64,
    /// When it was recorded; of several, the newest.
    pub time: Millis,
    /// When the oldest of several was.
    pub first_time: Millis,
    /// How many it is.
    pub count: u32,
    /// Lines.
    pub(crate) lines: u32,
    /// In bytes.
    pub size: u64,
    /// The file's own modification time.
    pub(crate) mtime_ms: Millis,
    /// The content.
    pub hash: Option<Hash>,
    /// The content before; of several, before the oldest.
    pub before: Option<Hash>,
    /// What happened.
    pub kind: VersionKind,
    pub(crate) author: AuthorKind,
    /// On what grounds.
    pub evidence: Evidence,
    /// It was overwritten before the session that overwrote it had seen it.
    pub lost: bool,
    /// Declared, never read from disk.
    pub unobserved: bool,
    /// Declared after it was written.
    pub late: bool,
    /// A formatter wrote it.
    pub formatted: bool,
    pub(crate) aside: Option<Box<KeptAside>>,
}

/// What a version of the user's does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptAside {
    pub(crate) from: Option<RelPath>,
    pub(crate) session: Option<SessionId>,
    pub(crate) edit: Option<u64>,
    pub(crate) candidates: Vec<SessionId>,
    pub(crate) command: Option<u64>,
}

impl KeptVersion {
    /// As it was recorded.
    pub(super) fn new(n: u64, time: Millis, fact: &VersionFact) -> Self {
        let mut kept = Self {
            n,
            time,
            first_time: time,
            count: 1,
            lines: fact.held.lines,
            size: fact.held.size,
            mtime_ms: fact.held.mtime_ms,
            hash: fact.held.hash,
            before: fact.before,
            kind: fact.kind,
            author: fact.author.kind,
            evidence: fact.evidence,
            lost: false,
            unobserved: fact.unobserved,
            late: false,
            formatted: false,
            aside: None,
        };
        kept.attribute(fact);
        kept
    }

    /// Takes over who wrote it, as a fact says.
    pub(super) fn attribute(&mut self, fact: &VersionFact) {
        self.author = fact.author.kind;
        self.evidence = fact.evidence;
        self.late = fact.late;
        self.formatted = fact.formatted;
        let aside = KeptAside {
            from: self.from().or(fact.from.as_ref()).cloned(),
            session: fact.author.session.clone(),
            edit: fact.edit,
            candidates: fact.candidates.clone(),
            command: fact.command,
        };
        self.aside = (aside != KeptAside::default()).then(|| Box::new(aside));
    }

    /// The name it had before.
    pub fn from(&self) -> Option<&RelPath> {
        self.aside.as_ref()?.from.as_ref()
    }

    /// The session that wrote it.
    pub fn session(&self) -> Option<&SessionId> {
        self.aside.as_ref()?.session.as_ref()
    }

    /// Who wrote it.
    pub fn author(&self) -> Author {
        Author {
            kind: self.author,
            session: self.session().cloned(),
            label: None,
        }
    }

    /// What sort of writer that was.
    pub fn author_kind(&self) -> AuthorKind {
        self.author
    }

    /// The author, to compare.
    pub(super) fn writer(&self) -> (AuthorKind, Option<&SessionId>) {
        (self.author, self.session())
    }

    /// Whether that session wrote it.
    pub fn is_by(&self, session: &SessionId) -> bool {
        self.session() == Some(session)
    }

    /// The edit it is attributed to.
    pub fn edit(&self) -> Option<u64> {
        self.aside.as_ref()?.edit
    }

    /// The command in whose window it was written.
    pub fn command(&self) -> Option<u64> {
        self.aside.as_ref()?.command
    }

    /// It is not what that session wrote after all.
    pub(super) fn rule_out(&mut self, session: &SessionId) {
        let author = self.session().cloned();
        let Some(aside) = &mut self.aside else { return };
        aside.candidates.retain(|candidate| candidate != session);
        // Where nobody else comes into question, there is nothing to choose.
        if aside.candidates.len() == 1 && aside.candidates.first() == author.as_ref() {
            aside.candidates.clear();
        }
    }

    /// Sessions whose windows or marks covered it.
    pub fn candidates(&self) -> &[SessionId] {
        self.aside.as_ref().map_or(&[], |aside| &aside.candidates)
    }

    /// As a fact about that path.
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
        }
    }

    /// Whether nothing sets the two apart but their contents and times.
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

    /// Takes an older one in that [is like](Self::is_like) it and came right
    /// before.
    pub(super) fn take_in(&mut self, older: &Self) {
        self.first_time = older.first_time;
        self.count = self.count.saturating_add(older.count);
        self.before = older.before;
    }
}
