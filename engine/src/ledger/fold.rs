//! Folds several versions of one path into one reported change.

use touchmark_proto::{Author, Change, Evidence, Hash, Millis, RelPath, VersionKind};

use crate::ledger::state::KeptVersion;

/// Returns the kind of change between two contents; `None` is no file.
pub(crate) fn kind_between(before: Option<Hash>, after: Option<Hash>) -> VersionKind {
    match (before, after) {
        (_, None) => VersionKind::Deleted,
        (None, Some(_)) => VersionKind::Created,
        (Some(_), Some(_)) => VersionKind::Modified,
    }
}

/// Several versions of one path, folded into one. They are added oldest first.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    pub authors: Vec<Author>,
    pub evidence: Vec<Evidence>,
    pub first: Millis,
    pub last: Millis,
    pub versions: u32,
    /// The previous name, if one of the versions was a rename.
    pub from: Option<RelPath>,
}

impl Folded {
    /// Returns an empty fold as of a time.
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

    /// Adds one more version of an author, which is not a kept version.
    pub(crate) fn add(&mut self, time: Millis, author: &Author, evidence: Evidence) {
        self.several((time, time), 1, author, evidence);
    }

    /// Adds `count` versions of an author, recorded between two times.
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

    /// Adds an author and its evidence without a version.
    pub(crate) fn name(&mut self, author: &Author, evidence: Evidence) {
        if !self.authors.contains(author) {
            self.authors.push(author.clone());
        }
        if !self.evidence.contains(&evidence) {
            self.evidence.push(evidence);
        }
    }

    /// Returns the fold as a change whose result is this content.
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
