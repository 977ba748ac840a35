//! Several versions of one path, told as one change.

use touchmark_proto::{Author, Change, Evidence, Hash, Millis, RelPath, VersionKind};

use crate::ledger::state::KeptVersion;

/// What happened between two contents of a path.
pub(crate) fn kind_between(before: Option<Hash>, after: Option<Hash>) -> VersionKind {
    match (before, after) {
        (_, None) => VersionKind::Deleted,
        (None, Some(_)) => VersionKind::Created,
        (Some(_), Some(_)) => VersionKind::Modified,
    }
}

/// Versions folded into one, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    pub authors: Vec<Author>,
    pub evidence: Vec<Evidence>,
    pub first: Millis,
    pub last: Millis,
    pub versions: u32,
    /// The name the path had before, where it was renamed.
    pub from: Option<RelPath>,
}

impl Folded {
    /// Nothing yet, as of a time.
    pub(crate) fn at(time: Millis) -> Self {
        Self {
            first: time,
            last: time,
            ..Self::default()
        }
    }

    pub(crate) fn of<'a>(versions: impl IntoIterator<Item = &'a KeptVersion>) -> Self {
        let mut folded = Self::default();
        for kept in versions {
            folded.take(kept);
        }
        folded
    }

    pub(crate) fn take(&mut self, kept: &KeptVersion) {
        let times = (kept.first_time, kept.time);
        self.several(times, kept.count, &kept.author(), kept.evidence);
        if let Some(from) = kept.from() {
            self.from = Some(from.clone());
        }
    }

    /// One more version of this author's, other than the kept ones.
    pub(crate) fn add(&mut self, time: Millis, author: &Author, evidence: Evidence) {
        self.several((time, time), 1, author, evidence);
    }

    /// So many more, from the first time to the last.
    fn several(
        &mut self,
        (first, last): (Millis, Millis),
        count: u32,
        author: &Author,
        evidence: Evidence,
    ) {
        if self.versions == 0 {
            self.first = first;
        }
        self.last = last;
        self.versions = self.versions.saturating_add(count);
        self.name(author, evidence);
    }

    /// Names an author, of no version.
    pub(crate) fn name(&mut self, author: &Author, evidence: Evidence) {
        if !self.authors.contains(author) {
            self.authors.push(author.clone());
        }
        if !self.evidence.contains(&evidence) {
            self.evidence.push(evidence);
        }
    }

    /// As a change that left this content behind.
    pub(crate) fn change(self, path: RelPath, kind: VersionKind, hash: Option<Hash>) -> Change {
        Change {
            path,
            kind,
            from: self.from.filter(|_| kind == VersionKind::Renamed),
            hash,
            changed_by: self.authors,
            evidence: self.evidence,
            first_time: self.first,
            last_time: self.last,
            versions: self.versions,
            lines: None,
            lost: None,
            writing: None,
            reverts: None,
            reverted_lines: None,
        }
    }
}
